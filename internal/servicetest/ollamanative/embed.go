package ollamanative

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"xiaozhi/internal/servicetest"
)

// dimensions is how many numbers a vector has, unless fewer are asked for.
const dimensions = 256

// embed answers POST /api/embed: texts in, vectors out, in their order. An empty text gives no numbers, as of a model that is
// asked for nothing.
func (f *fake) embed(w http.ResponseWriter, r *http.Request, body []byte) {
	refuse := func(status int, words string) {
		f.Refuse(w, status, string(servicetest.JSON(object{"error": words}).Data))
	}
	var q struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Truncate   *bool           `json:"truncate"`
		Dimensions *int            `json:"dimensions"`
	}
	err := json.Unmarshal(body, &q)
	var texts []string
	var one string
	if json.Unmarshal(q.Input, &one) == nil {
		texts = []string{one}
	} else if err == nil && len(q.Input) > 0 {
		err = json.Unmarshal(q.Input, &texts)
	}
	long := func(t string) bool { return len(t) > 8192*4 }
	switch {
	case err != nil:
		refuse(http.StatusBadRequest, err.Error())
	case q.Model == "":
		refuse(http.StatusBadRequest, "model is required")
	case f.Fault() == servicetest.WrongModel:
		refuse(http.StatusNotFound, `model "`+q.Model+`" not found, try pulling it first`)
	case strings.HasPrefix(q.Model, "qwen3:"):
		refuse(http.StatusBadRequest, "this model does not support embeddings")
	case q.Truncate != nil && !*q.Truncate && slices.ContainsFunc(texts, long):
		refuse(http.StatusBadRequest, "the input length exceeds the context length")
	default:
		dims, tokens := dimensions, 0
		if q.Dimensions != nil {
			dims = *q.Dimensions
		}
		vectors := [][]float32{}
		for _, t := range texts {
			vectors, tokens = append(vectors, servicetest.Vector(t, dims)), tokens+1+len(t)/4
		}
		whole := servicetest.JSON(object{"model": q.Model, "embeddings": vectors, "total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": tokens}).Data
		f.Send(w, r, f.Fault(), servicetest.Reply{
			Type: "application/json; charset=utf-8", Body: whole, Broken: bytes.Replace(whole, []byte("[["), []byte("[{"), 1), Filler: []byte("0.25,"),
		})
	}
}
