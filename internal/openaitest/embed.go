package openaitest

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"strings"
)

// Vectors answers with vectors of 64 numbers, which count the words of each text.
func Vectors(r *Request) Reply {
	var q struct {
		Input []string `json:"input"`
	}
	if err := json.Unmarshal(r.Body, &q); err != nil || len(q.Input) == 0 {
		return Failure(http.StatusBadRequest, "input is wanted, as a list of texts")
	}
	type item struct {
		Index     int         `json:"index"`
		Embedding [64]float32 `json:"embedding"`
	}
	var reply struct {
		Data  []item `json:"data"`
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	for i, text := range q.Input {
		one := item{Index: i}
		one.Embedding[0] = 0.01 // of a text without words, too
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(strings.Trim(word, ".,?!"))) // it takes all
			one.Embedding[1+h.Sum32()%63]++
			reply.Usage.Prompt++
		}
		reply.Data = append(reply.Data, one)
	}
	body, _ := json.Marshal(reply) // it always has a form
	return JSON(http.StatusOK, string(body))
}
