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
	"slices"
	"strings"
	"sync"
	"time"
)

// Board is the inside of a usual device: a speaker, a screen, a lamp and a camera, with the built-in tools of the
// firmware (5.5). Its methods may be called at the same time. Make one with [NewBoard].
type Board struct {
	mu     sync.Mutex
	values Values
}

// Values are the settings that the tools of a [Board] change.
type Values struct {
	Volume     int // 0..100
	Brightness int // 0..100
	Theme      string
	Lamp       bool
	Rebooted   int // times
}

// NewBoard makes a board with the settings of a new device.
func NewBoard() *Board {
	return &Board{values: Values{Volume: 70, Brightness: 60, Theme: "light"}}
}

// Values returns the present settings.
func (b *Board) Values() Values {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values
}

func (b *Board) change(f func(*Values)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.values)
}

// Tools returns all tools of the board: those of the firmware, a lamp, a camera that
// takes TestPicture, and so many sensors that the list has three pages.
func (b *Board) Tools() []Tool {
	percent := func(name string) Property {
		low, high := 0, 100
		return Property{Name: name, Type: "integer", Min: &low, Max: &high}
	}
	tools := []Tool{
		b.tell("self.get_device_status",
			"The present state of the device: volume of the speaker, brightness and theme of the screen, battery, network. "+
				"Use it to answer questions about the device, and before changing a value relative to what it is.", status),
		b.set("self.audio_speaker.set_volume", "Set the volume of the speaker. If only a direction is known, ask for the status first.", percent("volume"),
			func(v *Values, to any) bool { v.Volume = to.(int); return true }),
		b.set("self.screen.set_brightness", "Set the brightness of the screen.", percent("brightness"),
			func(v *Values, to any) bool { v.Brightness = to.(int); return true }),
		b.set("self.screen.set_theme", "Set the theme of the screen: light or dark.", Property{Name: "theme", Type: "string"},
			func(v *Values, to any) bool {
				if to == "light" || to == "dark" {
					v.Theme = to.(string)
				}
				return to == v.Theme
			}),
		Camera(TestPicture),
		b.do("self.lamp.turn_on", "Switch the lamp on.", func(v *Values) { v.Lamp = true }),
		b.do("self.lamp.turn_off", "Switch the lamp off.", func(v *Values) { v.Lamp = false }),
		b.tell("self.lamp.get_state", "Whether the lamp is on.",
			func(v Values) string { return fmt.Sprintf(`{"power":%t}`, v.Lamp) }),
	}
	forPeople := []Tool{
		b.tell("self.get_system_info", "Facts about the hardware and firmware.", func(Values) string {
			return `{"board":"` + boardName + `","version":"` + firmwareVersion + `"}`
		}),
		b.do("self.reboot", "Restart the device.", func(v *Values) { v.Rebooted++ }),
	}
	for i := range forPeople {
		forPeople[i].UserOnly = true
	}
	return slices.Concat(tools, forPeople, sensors())
}

// tell makes a tool without arguments that says something of the settings.
func (b *Board) tell(name, description string, text func(Values) string) Tool {
	return Tool{Name: name, Description: description, Call: func(context.Context, Call) (Result, error) {
		return Result{Text: text(b.Values())}, nil
	}}
}

func (b *Board) do(name, description string, change func(*Values)) Tool {
	return Tool{Name: name, Description: description, Call: func(context.Context, Call) (Result, error) {
		b.change(change)
		return Result{Text: "true"}, nil
	}}
}

// set makes a tool with one argument; it says "false" when the value is refused.
func (b *Board) set(name, description string, p Property, change func(v *Values, to any) bool) Tool {
	return Tool{Name: name, Description: description, Properties: []Property{p}, Call: func(_ context.Context, c Call) (Result, error) {
		done := false
		b.change(func(v *Values) { done = change(v, c.Arguments[p.Name]) })
		return Result{Text: fmt.Sprint(done)}, nil
	}}
}

func status(v Values) string {
	return fmt.Sprintf(`{"audio_speaker":{"volume":%d},"screen":{"brightness":%d,"theme":"%s"},`+
		`"battery":{"level":80,"charging":false},"network":{"type":"wifi","ssid":"home","signal":"strong"}}`, v.Volume, v.Brightness, v.Theme)
}

// sensors are tools whose descriptions are long enough to fill pages.
func sensors() []Tool {
	kinds := []string{"temperature", "humidity", "pressure", "light", "noise", "dust"}
	rooms := []string{"kitchen", "bedroom", "bathroom", "hallway", "balcony", "garage", "cellar", "study"}
	var tools []Tool
	for i, room := range rooms {
		for k, kind := range kinds {
			value := 10 + 3*i + 7*k
			tools = append(tools, Tool{
				Name: "self.sensor." + room + "_" + kind,
				Description: fmt.Sprintf("Read the %s sensor in the %s. The number is in the unit that is usual for %s. "+
					"Use it only if somebody asks for the %s in the %s by name; for other rooms there are other sensors, "+
					"and for the weather outside this is not the right source. The value is measured anew at each call.", kind, room, kind, kind, room),
				Call: func(context.Context, Call) (Result, error) { return Result{Text: fmt.Sprint(value)}, nil },
			})
		}
	}
	return tools
}

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
