package minimax

import (
	"context"
	"strings"

	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// listVoices asks for the voices of the service, and for those that the account has made.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	v := &speaker{section: s, address: strings.TrimSuffix(strings.TrimRight(s.Address(regions(), china), "/"), "/v1")}
	r, err := httpvoice.PostJSON(ctx, service.Join(v.address, "/v1/get_voice"+v.group()), v.header(), map[string]string{"voice_type": "all"})
	if err != nil {
		return nil, err
	}
	type entry struct {
		ID   string `json:"voice_id"`
		Name string `json:"voice_name"`
	}
	var reply struct {
		report

		System []entry `json:"system_voice"`
		Cloned []entry `json:"voice_cloning"`
		Made   []entry `json:"voice_generation"`
	}
	if err := httpvoice.Get(s, r, func(*transport.Refusal) {}, &reply); err != nil {
		return nil, err
	}
	if err := reply.failure(); err != nil {
		account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
		return nil, account.Wrap(ctx, ctx, "list voices", err)
	}
	var out []service.Voice
	for _, all := range [][]entry{reply.Cloned, reply.Made, reply.System} {
		for _, e := range all {
			out = append(out, service.Voice{Name: e.ID, Title: e.Name})
		}
	}
	return out, nil
}
