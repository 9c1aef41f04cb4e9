package openaitest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Picture is an image in a chat request, with the text of its message.
type Picture struct {
	Text string
	MIME string
	Data []byte
}

// Pictures returns all images of a chat request, in their order. A message whose content is not as the format says is
// an error: content is a text, null, or a list of parts; a picture is a part image_url whose url is a data URL in
// base64 of the type that it names.
func (r *Request) Pictures() ([]Picture, error) {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, fmt.Errorf("chat request: %w", err)
	}
	var all []Picture
	for i, m := range body.Messages {
		found, err := picturesIn(m.Content)
		if err == nil && len(found) > 0 && m.Role != "user" {
			err = fmt.Errorf("a picture from the %s", m.Role)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func picturesIn(content json.RawMessage) ([]Picture, error) {
	if len(content) == 0 || content[0] != '[' {
		var text *string
		if len(content) > 0 && json.Unmarshal(content, &text) != nil {
			return nil, fmt.Errorf("content is neither text nor a list: %.40s", content)
		}
		return nil, nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	var text strings.Builder
	var found []Picture
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != nil && p.ImageURL == nil:
			text.WriteString(*p.Text)
		case p.Type == "image_url" && p.ImageURL != nil && p.Text == nil:
			picture, err := readDataURL(p.ImageURL.URL)
			if err != nil {
				return nil, err
			}
			found = append(found, picture)
		default:
			return nil, fmt.Errorf("a part of type %q does not hold what it says", p.Type)
		}
	}
	for i := range found {
		found[i].Text = text.String()
	}
	return found, nil
}

// readDataURL takes data:TYPE;base64,DATA apart.
func readDataURL(url string) (p Picture, err error) {
	head, data, ok := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(head, "data:")
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	if !ok || !isData || !isBase64 {
		return p, fmt.Errorf("no data URL in base64: %.40s", url)
	}
	if p.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		return p, fmt.Errorf("data URL: %w", err)
	}
	if len(p.Data) == 0 {
		return p, errors.New("an empty picture")
	}
	if p.MIME = http.DetectContentType(p.Data); p.MIME != kind {
		return p, fmt.Errorf("a picture that says it is %s is %s", kind, p.MIME)
	}
	return p, nil
}
