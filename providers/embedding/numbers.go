package embedding

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
)

// Numbers are those of a vector: a list, or base64 of float32 in little-endian order, as some services send them by choice.
type Numbers []float32

// UnmarshalJSON reads either.
func (n *Numbers) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '"' {
		return json.Unmarshal(raw, (*[]float32)(n))
	}
	var packed string
	if err := json.Unmarshal(raw, &packed); err != nil {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(data)%4 != 0 {
		return errors.New("a vector is no base64 of float32")
	}
	*n = make([]float32, len(data)/4)
	for i := range *n {
		(*n)[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return nil
}
