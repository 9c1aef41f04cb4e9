// Render makes the sounds that are played when speech synthesis itself is down:
// it speaks the failure phrases with the local engines and writes them as WAV
// files. Run it from the root of the repository after changing a phrase:
//
//	go run -tags nolibopusfile ./providers/local/render
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"xiaozhi/providers/local"
)

func main() {
	from := flag.String("phrases", "prompts", "folder of phrases.zh.yaml and phrases.en.yaml")
	to := flag.String("out", filepath.Join("prompts", "sounds"), "folder of the sounds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *from, *to)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, from, to string) error {
	s, err := local.New(ctx, local.Options{})
	if err != nil {
		return err
	}
	for _, lang := range []string{"zh", "en"} {
		files, err := render(ctx, s, from, to, lang)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d sounds by %v\n", lang, files, s.Found())
	}
	return nil
}
