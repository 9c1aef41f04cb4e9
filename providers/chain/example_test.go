package chain_test

import (
	"context"
	"errors"
	"fmt"

	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/providertest"
)

// The second model answers when the first one fails.
func ExampleNewLLM() {
	down := &providers.Error{Provider: "cloud", Op: "chat", Kind: providers.Unavailable, Err: errors.New("connection refused")}
	cloud := &providertest.LLM{Label: "cloud", Script: []providertest.Step{providertest.Fail(down)}}
	home := &providertest.LLM{Label: "home", Script: []providertest.Step{providertest.Say("It is ", "ten past nine.")}}

	models, err := chain.NewLLM([]providers.LLM{cloud, home}, chain.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "What time is it?"}}}
	for delta, err := range models.Generate(context.Background(), request) {
		fmt.Printf("%s: %q, %v\n", delta.Provider, delta.Text, err)
	}
	// Output:
	// home: "It is ", <nil>
	// home: "ten past nine.", <nil>
}
