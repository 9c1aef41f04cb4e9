package devicetest

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	cameraBoundary = "----ESP32_CAMERA_BOUNDARY"
	maxHTTPReply   = 8 << 10 // bytes; the device's HTTP reader stops there (1.3)
)

// Camera is the tool self.camera.take_photo: it uploads a picture with the
// question to the server's vision URL and returns the reply's body (5.6).
func Camera(picture func() ([]byte, error)) Tool {
	return Tool{
		Name:        "self.camera.take_photo",
		Description: "Take a photo and explain it. Use it when the user asks what can be seen.",
		Properties:  []Property{{Name: "question", Type: "string"}},
		Call: func(ctx context.Context, c Call) (Result, error) {
			jpg, err := picture()
			if err != nil {
				return Result{}, refusalError("Failed to capture photo")
			}
			question, _ := c.Arguments["question"].(string) // checked against the schema before
			text, err := c.upload(ctx, question, jpg)
			return Result{Text: text}, err
		},
	}
}

func (c Call) upload(ctx context.Context, question string, jpg []byte) (string, error) {
	if c.Vision.URL == "" {
		return "", refusalError("Image explain URL or token is not set")
	}
	body := fmt.Sprintf(photoForm, cameraBoundary, question, jpg)
	// A reader of unknown length makes net/http send chunks, as the firmware does.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Vision.URL, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		return "", refusalError("Failed to connect to explain URL")
	}
	req.Header.Set("Device-Id", c.DeviceID)
	req.Header.Set("Client-Id", c.ClientID)
	if c.Vision.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Vision.Token)
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+cameraBoundary)
	resp, err := c.client.Do(req)
	if err != nil {
		return "", refusalError("Failed to connect to explain URL")
	}
	defer resp.Body.Close()
	text, found, err := readHTTPReply(resp)
	for _, v := range found {
		c.violate(time.Now(), RuleMCPRequest, "vision reply: %s", v)
	}
	if err != nil {
		return "", refusalError("Failed to upload photo")
	}
	return string(text), nil
}

// readHTTPReply takes a body as the device's HTTP client can: status 200, with
// a Content-Length, never chunked, under 8 KiB (1.3).
func readHTTPReply(resp *http.Response) (body []byte, found []string, err error) {
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("status %s, must be exactly 200", resp.Status)
	}
	if resp.ContentLength < 0 || len(resp.TransferEncoding) > 0 {
		found = append(found, "no Content-Length, or chunked")
	}
	if body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20)); err != nil {
		return nil, found, err
	}
	if len(body) >= maxHTTPReply {
		found = append(found, fmt.Sprintf("body of %d bytes, must stay under %d", len(body), maxHTTPReply))
	}
	return body, found, nil
}

// photoForm is the body of the upload, with boundary, question and picture left open.
const photoForm = "--%[1]s\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\n%[2]s\r\n" +
	"--%[1]s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"camera.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n%[3]s\r\n" +
	"--%[1]s--\r\n"

// TestPicture is a small JPEG: a red disc and a blue square on a light ground.
func TestPicture() ([]byte, error) {
	const width, height = 320, 240
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{235, 235, 220, 255}), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(200, 80, 280, 160), image.NewUniform(color.RGBA{30, 60, 200, 255}), image.Point{}, draw.Src)
	for y := range height {
		for x := range width {
			if dx, dy := x-100, y-120; dx*dx+dy*dy < 60*60 {
				img.Set(x, y, color.RGBA{200, 30, 30, 255})
			}
		}
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 80})
	return out.Bytes(), err
}
