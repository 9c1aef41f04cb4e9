#!/bin/sh
# boot.sh FOLDER starts the systemd of a bare system in a folder as the first process of a machine of its own, without any
# engine for containers. scripts/fresh.sh runs it, as root, in new namespaces of all kinds but users.
set -eu
root=$1

mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
	mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
	mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
	mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
fi
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ip link set lo up
mkdir -p .host
pivot_root . .host
umount -l /.host
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=xiaozhi /lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=no
