package connection

import (
	"bytes"
	"net/http"
)

// otaView is what the page for people shows.
type otaView struct {
	OTA, Talk string
	Connected int
	Auth      bool
	IPv6      bool // the address is one that devices cannot use
	Loopback  bool // the address is one that only this machine can use
}

// otaPage is for a person who opens the OTA address in a browser.
const otaPage = `<!doctype html>
<html lang="zh">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>xiaozhi OTA</title>
<style>
body { font-family: system-ui, sans-serif; max-width: 42em; margin: 2em auto; padding: 0 1em; line-height: 1.6; }
code { background: #8882; padding: .2em .4em; border-radius: .3em; overflow-wrap: anywhere; }
dt { margin-top: 1em; }
.warn { border-left: .3em solid #d80; padding-left: .7em; }
</style>
</head>
<body>
<h1>小智服务器正在运行 <small lang="en">The xiaozhi server is running</small></h1>
{{if .Loopback}}<p class="warn">这是本机地址，设备无法访问。请用服务器在局域网中的 IP 打开此页面。<br>
<span lang="en">This address works on this machine only. Open this page by the server's IP address in your network to see the one for devices.</span></p>{{end}}
{{if .IPv6}}<p class="warn">设备不能使用 IPv6 地址，请用 IPv4 地址或域名打开此页面。<br>
<span lang="en">Devices cannot use an IPv6 address. Open this page by an IPv4 address or a name.</span></p>{{end}}
<p>在设备的 Wi-Fi 配网页面（高级选项）中，将 OTA 地址填写为下面这一行，保存后重启设备。<br>
<span lang="en">In the Wi-Fi set-up page of your device (advanced options), type this as the OTA address, save, and restart the device.</span></p>
<dl>
<dt>OTA 地址 / OTA address</dt>
<dd><code>{{.OTA}}</code></dd>
<dt>WebSocket 地址（设备自动获得）/ WebSocket address (devices get it by themselves)</dt>
<dd><code>{{.Talk}}</code></dd>
<dt>已连接的设备 / Devices connected</dt>
<dd>{{.Connected}}</dd>
<dt>访问令牌 / Access token</dt>
<dd>{{if .Auth}}需要（设备自动获得） / required (devices get it by themselves){{else}}不需要 / not required{{end}}</dd>
</dl>
<p>设备只在说话时保持连接，空闲时数字为 0 是正常的。<br>
<span lang="en">Devices are connected only while they talk, so 0 is normal when nobody does.</span></p>
</body>
</html>
`

// serveOTAPage shows a person what to type where.
func (s *Server) serveOTAPage(w http.ResponseWriter, r *http.Request) {
	base := s.baseURL(r)
	var page bytes.Buffer
	err := s.page.Execute(&page, otaView{
		OTA: base.String() + otaPath, Talk: talkURL(base), Connected: s.Connected(),
		Auth: s.opts.Auth.Enabled, IPv6: !deviceCanUse(base), Loopback: isLoopback(base.Hostname()),
	})
	if err != nil {
		s.log.Error("ota page cannot be made", "err", err)
		refuse(w, http.StatusInternalServerError, "服务器内部错误。", "Internal error.")
		return
	}
	writeBody(w, http.StatusOK, "text/html; charset=utf-8", page.Bytes())
}
