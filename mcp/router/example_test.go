package router_test

import (
	"context"
	"fmt"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// A router offers the tools of its sources to a model, checks the calls of the
// model and runs them.
func Example() {
	ctx := context.Background()
	own := local.New(local.Options{})
	if err := own.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = own.Stop() }()
	tools := router.New(router.Options{Rules: router.Rules{Allow: []string{"calculate"}}}, own)
	defer tools.Close()

	for _, offer := range tools.Offers() {
		fmt.Println("offered:", offer.LLMName, offer.Kind)
	}
	call, refused := tools.Prepare(mcp.Call{ID: "call-1", Name: "calculate", Arguments: `{"expression":"6*7"}`})
	if refused == nil {
		fmt.Println("result:", mcp.ResultText(tools.Run(ctx, call)))
	}
	_, refused = tools.Prepare(mcp.Call{ID: "call-2", Name: "calculate", Arguments: `{}`})
	fmt.Println("refused:", mcp.ResultText(*refused))
	// Output:
	// offered: calculate query
	// result: 6*7 = 42
	// refused: invalid arguments for calculate: required: missing properties: ["expression"]
}
