package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
)

// TestConsolePictures makes a contact sheet of each page for a person to look at, into the folder of PICTURES: wide and narrow,
// English and Chinese, light and dark; and the two pictures of the README.
func TestConsolePictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("make pictures takes them")
	}
	b := browsertest.Need(t, browser)
	s, cookie := home(t)
	tab := b.Tab(t, 5*time.Minute)
	show(tab, cookie, loopback)
	for _, path := range there(t, s, cookie) {
		var all []image.Image
		for _, width := range []int64{1280, 360} {
			for _, lang := range []string{"en", "zh"} {
				for _, dark := range []bool{false, true} {
					tab.Screen(width, 800, dark)
					tab.Go(inLang(s, path, lang))
					picture, err := png.Decode(bytes.NewReader(tab.Picture()))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, picture)
				}
			}
		}
		name := strings.NewReplacer("/", "-", ":", "", "?", "-", "=", "-").Replace(path) + ".png"
		if err := os.WriteFile(filepath.Join(dir, name), encoded(t, sheet(all)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tab.Screen(1200, 1100, false)
	tab.Go(inLang(s, "conversations/"+keptTalk, "en"))
	tab.Text(`document.querySelector("details.when").open = true, ""`)
	save := func(name string, picture []byte) {
		if err := os.WriteFile(filepath.Join(dir, "readme-"+name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("waterfall", tab.Shot(1200, 1100))
	talk := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
	talk.Screen(1200, 980, false)
	for i, words := range []string{"what time is it", "what can you do"} {
		talk.Type(`[data-talk="text"]`, words+"\r")
		talk.Await(fmt.Sprintf(`document.querySelectorAll(".talk-said .server").length > %d`, i))
		talk.Await(stateIs("idle"))
	}
	talk.Await(`document.querySelector("#last-turn svg")`)
	talk.Text(`scrollTo(0, 0), ""`)
	save("talk", talk.Shot(1200, 980))
}

func encoded(t *testing.T, picture image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sheet puts pictures side by side, each half as large.
func sheet(all []image.Image) image.Image {
	const gap = 12
	size := image.Point{X: gap}
	for _, picture := range all {
		size.X += picture.Bounds().Dx()/2 + gap
		size.Y = max(size.Y, picture.Bounds().Dy()/2)
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	draw.Draw(out, out.Bounds(), image.NewUniform(color.Gray{Y: 120}), image.Point{}, draw.Src)
	x := gap
	for _, picture := range all {
		halve(out, x, picture)
		x += picture.Bounds().Dx()/2 + gap
	}
	return out
}

// halve draws a picture half as large, at the top.
func halve(out *image.RGBA, left int, picture image.Image) {
	from := image.NewRGBA(picture.Bounds())
	draw.Draw(from, from.Bounds(), picture, picture.Bounds().Min, draw.Src)
	for y := range from.Bounds().Dy() / 2 {
		for x := range from.Bounds().Dx() / 2 {
			at, below := from.PixOffset(2*x, 2*y), from.PixOffset(2*x, 2*y+1)
			for i := range 4 {
				sum := int(from.Pix[at+i]) + int(from.Pix[at+4+i]) + int(from.Pix[below+i]) + int(from.Pix[below+4+i])
				out.Pix[out.PixOffset(left+x, y)+i] = byte(sum / 4)
			}
		}
	}
}
