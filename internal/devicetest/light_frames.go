package devicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The frames of the light dialect with their members in their order. A
// frame of the server must be what one of these encodes to, byte for byte.
type (
	lightRegister struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  struct {
			Address string      `json:"mac_addr"`
			Tools   []LightTool `json:"tools"`
		} `json:"params"`
		ID string `json:"id"`
	}
	lightConfirmation struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"result"`
	}
	lightRefusal struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	lightExecute struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  struct {
			Tool  string          `json:"tool_name"`
			Input json.RawMessage `json:"tool_input"`
		} `json:"params"`
		ID string `json:"id"`
	}
	lightMessage struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  struct {
			Type    string `json:"type"`
			Content string `json:"content"`
		} `json:"params"`
	}
	lightEnvelope struct {
		Session string          `json:"session_id"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
)

// sameBytes reads raw into v and checks that v is written as raw is.
func sameBytes(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("not a frame of the dialect: %s", shorten(raw))
	}
	want, err := plainJSON(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw, want) {
		return fmt.Errorf("%s must be written as %s", shorten(raw), shorten(want))
	}
	return nil
}

// plainJSON writes v as JSON in one line, with no escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
