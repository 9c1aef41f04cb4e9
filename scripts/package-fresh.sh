# shellcheck shell=bash
# What scripts/fresh.sh does with FRESH=package, in namespaces of its own; to be sourced. $root is the bare system.
# The package of dist/ is installed with what it recommends, systemd starts, and the server under it must be ready, be
# what its unit says (a user of its own, no rights, system calls filtered), answer, be started again when it
# hangs, keep what it has over a stop, an upgrade, and a purge.

deb=$(ls dist/xiaozhi_*_"$(dpkg --print-architecture)".deb 2>/dev/null || true)
[ -n "$deb" ] && [ "$(echo "$deb" | wc -l)" = 1 ] || fail "one package is expected in dist/: make release / dist/ 中应有一个软件包"

mount -t proc proc /proc # of this namespace
mount -t proc proc "$root/proc"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
[ -n "$(ls "$root/etc/apt/sources.list.d" 2>/dev/null)" ] || echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"
passed=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
	[ -z "${!name:-}" ] || passed+=("$name=${!name}")
done
for tool in go gcc make git curl python3; do
	! chroot "$root" env -i "${passed[@]}" sh -c "command -v $tool" >/dev/null || fail "$tool is there: this is no bare system; remove $base"
done

echo "fresh: installing ${deb##*/} / 正在安装"
cp "$deb" "$root/root/xiaozhi.deb"
chroot "$root" env -i "${passed[@]}" sh -c 'apt-get update && apt-get install -y /root/xiaozhi.deb' >"$root/root/install.log" 2>&1 ||
	{ cat "$root/root/install.log"; fail "it could not be installed / 安装失败"; }
umount "$root/proc"

# The machine has a control group of its own, which is removed when it has ended.
groups=()
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
	[ -e "$hierarchy/cgroup.procs" ] || continue
	groups+=("$hierarchy/xiaozhi-fresh-$(date +%s)")
	mkdir "${groups[-1]}"
done
machine=""
ended() {
	[ -z "$machine" ] || { kill -KILL "$machine" && wait "$machine"; } 2>/dev/null || true
	sleep 0.5
	for group in "${groups[@]}"; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
}
trap ended EXIT
(
	for group in "${groups[@]}"; do echo "$BASHPID" >"$group/cgroup.procs"; done
	exec unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --net --cgroup scripts/boot.sh "$root"
) >"$root/root/boot.log" 2>&1 &
machine=$!

# inside COMMAND...: runs a command on the machine.
init=""
inside() { nsenter -t "$init" -m -p -u -i -n -C -r -w -- env -i "${passed[@]}" "$@"; }
# till SECONDS WHAT COMMAND...: waits until a command on the machine succeeds.
till() {
	local seconds=$1 what=$2
	shift 2
	for _ in $(seq $((seconds * 5))); do
		if inside "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.2
	done
	inside systemctl status xiaozhi --no-pager -l || true
	inside journalctl -u xiaozhi --no-pager -n 60 || true
	fail "$what"
}
property() { inside systemctl show xiaozhi -p "$1" --value; }

echo "fresh: starting systemd / 正在启动 systemd"
for _ in $(seq 50); do
	init=$(cat "/proc/$machine/task/$machine/children" 2>/dev/null | tr -d ' ' || true)
	[ -z "$init" ] || ! inside systemctl is-system-running 2>/dev/null | grep -q -e running -e degraded || break
	sleep 0.2
done
healthy='exec 3<>/dev/tcp/127.0.0.1/8000 && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && grep -q "200 OK" <&3'
till 30 "the service did not become ready / 服务没有就绪" systemctl is-active --quiet xiaozhi
till 1 "a ready service does not answer / 就绪的服务没有应答" bash -c "$healthy"

pid=$(property MainPID)
status=$(inside cat "/proc/$pid/status")
for want in '^Uid:.6[1-5][0-9]{3}' '^CapEff:.0+$' '^CapBnd:.0+$' '^NoNewPrivs:.1' '^Seccomp:.2'; do
	echo "$status" | grep -qE "$want" || { echo "$status"; fail "the server runs without a restriction of its unit: $want"; }
done
[ "$(property Type)" = notify ] || fail "the unit is not of type notify"
exposure=$(inside systemd-analyze security --no-pager xiaozhi.service | tail -1)
echo "fresh: $exposure"
inside systemd-analyze security --threshold=25 xiaozhi.service >/dev/null || fail "the unit leaves more open than 2.5"
inside systemd-analyze verify --man=no /lib/systemd/system/xiaozhi.service || fail "systemd-analyze verify complains"

# ask TEXT: what a simulated speaker is answered.
ask() { inside xiaozhi talk --server http://127.0.0.1:8000/xiaozhi/ota/ --text "$1" 2>&1; }
answer=$(ask "what time is it") || { echo "$answer"; inside journalctl -u xiaozhi --no-pager -n 40; fail "talk failed / talk 失败"; }
echo "$answer"
echo "$answer" | grep -q ':[0-9][0-9]' || fail "no time of day was answered / 没有得到时间"
inside xiaozhi devices --data /var/lib/xiaozhi | tee "$root/root/devices.log"
grep -qi 'online\|在线\|:' "$root/root/devices.log" || fail "the owner's command does not see the speaker"

echo "fresh: a server that hangs / 服务挂起"
inside mkdir -p /run/systemd/system/xiaozhi.service.d
inside sh -c 'printf "[Service]\nWatchdogSec=2\n" >/run/systemd/system/xiaozhi.service.d/fast.conf && systemctl daemon-reload && systemctl restart xiaozhi'
till 20 "it did not start again" systemctl is-active --quiet xiaozhi
inside sh -c "kill -STOP $(property MainPID)"
till 30 "a server that hangs was not started again / 挂起的服务没有被重启" sh -c '[ "$(systemctl show xiaozhi -p NRestarts --value)" -ge 1 ] && systemctl is-active --quiet xiaozhi'
inside sh -c 'rm -r /run/systemd/system/xiaozhi.service.d && systemctl daemon-reload'

echo "fresh: stop, upgrade, removal / 停止、升级、卸载"
inside systemctl stop xiaozhi
[ "$(property Result)" = success ] || fail "it did not stop well: $(property Result)"
inside sh -c 'test -s /var/lib/private/xiaozhi/xiaozhi.db' || fail "nothing was kept in /var/lib/private/xiaozhi"
inside systemctl start xiaozhi
inside sh -c 'echo "# mine" >>/etc/xiaozhi/config.yaml && before=$(systemctl show xiaozhi -p MainPID --value) && dpkg -i /root/xiaozhi.deb >/dev/null &&
	grep -q "# mine" /etc/xiaozhi/config.yaml && [ "$before" != "$(systemctl show xiaozhi -p MainPID --value)" ]' || fail "an upgrade lost the settings, or started nothing again"
till 30 "not ready after the upgrade" systemctl is-active --quiet xiaozhi

echo "fresh: as Home Assistant starts it / Home Assistant 的启动方式"
inside systemctl stop xiaozhi
mkdir -p "$root/data"
tar -xzf dist/xiaozhi_*_homeassistant.tar.gz -C "$root/root" xiaozhi/run.sh
echo '{"language":"en","timezone":"Europe/Berlin","pairing":"open","log_level":"info","environment":[{"name":"XIAOZHI_SERVER__MAX_DEVICES","value":"7"}]}' >"$root/data/options.json"
chmod 0600 "$root/data/options.json"
inside sh /root/xiaozhi/run.sh >"$root/root/app.log" 2>&1 &
till 30 "the app does not answer" bash -c "$healthy"
answer=$(ask "what time is it") || { echo "$answer"; cat "$root/root/app.log"; fail "talk with the app failed"; }
echo "$answer" | grep -q ':[0-9][0-9]' || fail "the app does not tell the time"
inside sh -c 'test "$(stat -c %u /data/xiaozhi/xiaozhi.db)" = 65532' || fail "the app's data are not the server's"
inside sh -c 'for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" != /usr/bin/xiaozhi ] || kill -TERM ${p#/proc/}; done'
wait $! || { cat "$root/root/app.log"; fail "the app did not stop well"; }

inside dpkg --purge xiaozhi
inside sh -c '! systemctl is-active --quiet xiaozhi && ! test -e /usr/bin/xiaozhi && ! test -e /etc/xiaozhi/config.yaml && test -s /var/lib/private/xiaozhi/xiaozhi.db' ||
	fail "a purge left the server, or took what people have said"
kill -KILL "$machine"
wait "$machine" 2>/dev/null || true
machine=""
ended
trap - EXIT
echo "fresh: the package is well on a bare Debian 12 / 软件包在干净的 Debian 12 上全部通过"
