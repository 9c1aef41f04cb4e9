package iot

import (
	"bytes"
	"encoding/json"
	"errors"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/rawjson"
)

// parseReport reads one element of states.
func parseReport(raw json.RawMessage) (report, error) {
	var w struct {
		Name  json.RawMessage `json:"name"`
		State json.RawMessage `json:"state"`
	}
	var r report
	if err := unmarshalObject(raw, &w); err != nil {
		return r, err
	}
	if !rawjson.Present(w.Name) || json.Unmarshal(w.Name, &r.thing) != nil || r.thing == "" {
		return r, errors.New("its name is missing or not a string")
	}
	if !rawjson.Present(w.State) || json.Unmarshal(w.State, &r.state) != nil {
		return r, errors.New("its state is not an object")
	}
	return r, nil
}

// readValue reads a property's value, whatever its declared type: some firmware
// sends fractions for its whole numbers.
func readValue(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		return text.Shorten(v, maxStateText), nil
	case json.Number:
		return rawjson.Number(v), nil
	}
	return nil, errors.New("its value is not a boolean, a number or a string")
}
