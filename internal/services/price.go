package services

import (
	"cmp"

	"xiaozhi/internal/config"
)

// PriceOf returns what a service of the settings costs. known is false where its owner has set no price, unless nobody has
// to pay for it: it has no key, and runs in the program, at home or for nothing.
func PriceOf(cfg *config.Config, name string) (p config.Price, known bool) {
	section := cfg.Providers[name]
	if section.Price != (config.Price{}) {
		return section.Price, true
	}
	kind, _ := KindOf(cmp.Or(section.Type, name)) // of one that is not known: not free
	return p, kind.Free && section.APIKey == ""
}
