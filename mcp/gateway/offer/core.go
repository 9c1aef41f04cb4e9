package offer

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // a checksum that clients ask for
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
)

//go:embed tools.json
var toolsJSON []byte

// coreTools returns the tools that are always there.
func (o Options) coreTools() []catalog.Tool {
	yes := true
	hints := mcp.Annotations{ReadOnly: &yes}
	return []catalog.Tool{
		{Stream: "system", Name: "info", Run: o.info, Annotations: hints},
		{Stream: "time", Name: "now", Run: o.now, Annotations: hints},
		{Stream: "util", Name: "uuid", Run: newUUIDs, Annotations: hints},
		{Stream: "util", Name: "hash", Run: hashOf, Annotations: hints},
	}
}

type nowInfo struct {
	Format    string `json:"format"`
	Time      any    `json:"time"` // in the format
	Date      string `json:"date"`
	TimeOnly  string `json:"timeOnly"`
	Timezone  string `json:"timezone"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
	Unix      int64  `json:"unix"`
	ISO       string `json:"iso"`
}

func (o Options) now(ctx context.Context, arguments map[string]any) (any, error) {
	zone := o.Zone()
	if name, _ := arguments["timezone"].(string); name != "" {
		var err error
		if zone, err = time.LoadLocation(name); err != nil || name == "Local" {
			return nil, errors.New(catalog.CallerFrom(ctx).Say("gateway/zone-unknown", strconv.Quote(name)))
		}
	}
	now := time.Now().In(zone)
	out := nowInfo{
		Format: "locale", Date: now.Format("2006/1/2"), TimeOnly: now.Format(time.TimeOnly), Timezone: zone.String(),
		Timestamp: now.UnixMilli(), Unix: now.Unix(), ISO: now.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	out.Time = out.Date + " " + out.TimeOnly
	switch format, _ := arguments["format"].(string); format {
	case "iso":
		out.Format, out.Time = format, out.ISO
	case "timestamp":
		out.Format, out.Time = format, out.Timestamp
	case "unix":
		out.Format, out.Time = format, out.Unix
	}
	return out, nil
}

type uuidResult struct {
	Version string `json:"version"`
	Count   int    `json:"count"`
	UUIDs   any    `json:"uuids"` // a text for one, a list for more
}

func newUUIDs(_ context.Context, arguments map[string]any) (any, error) {
	count := 1
	if n, ok := arguments["count"].(int64); ok {
		count = int(n)
	}
	list := make([]string, count)
	for i := range list { // random ones (RFC 9562, version 4)
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		list[i] = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	if count == 1 {
		return uuidResult{"v4", 1, list[0]}, nil
	}
	return uuidResult{"v4", count, list}, nil
}

type hashResult struct {
	Algorithm string `json:"algorithm"`
	Hash      string `json:"hash"`
	Length    int    `json:"length"`
}

func hashOf(_ context.Context, arguments map[string]any) (any, error) {
	algorithm, _ := arguments["algorithm"].(string)
	var h hash.Hash
	switch algorithm {
	case "md5":
		h = md5.New() //nolint:gosec // a checksum
	case "sha1":
		h = sha1.New() //nolint:gosec // a checksum
	case "sha512":
		h = sha512.New()
	default:
		algorithm, h = "sha256", sha256.New()
	}
	data, _ := arguments["data"].(string)
	h.Write([]byte(data))
	sum := hex.EncodeToString(h.Sum(nil))
	return hashResult{algorithm, sum, len(sum)}, nil
}

// definitions are the descriptions and schemas of the core tools.
type definitions struct {
	DeviceID json.RawMessage     `json:"device_id"` // schema of the argument that names a device
	Tools    map[string]struct { // by full name
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
	} `json:"tools"`
}

// tool returns t with the description and the schema of its name.
func (d definitions) tool(t catalog.Tool) (catalog.Tool, error) {
	def, ok := d.Tools[catalog.JoinName(t.Stream, t.Name)]
	if !ok {
		return t, errors.New("it has no definition")
	}
	var schema bytes.Buffer
	if err := json.Compact(&schema, def.Schema); err != nil {
		return t, err
	}
	t.Description, t.Schema = strings.TrimSpace(def.Description), schema.Bytes()
	return t, nil
}
