package httpvoice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// PostJSON makes a request with a body of JSON and headers, which it copies.
func PostJSON(ctx context.Context, address string, header http.Header, body any) (*http.Request, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// Head makes a request for nothing but the connection.
func Head(ctx context.Context, address string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	return r, nil
}
