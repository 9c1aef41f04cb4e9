package local

import (
	"cmp"
	"context"
	"errors"

	"xiaozhi/internal/text/calc"
	"xiaozhi/internal/text/measure"
	"xiaozhi/mcp"
)

// calculate works out an expression.
func calculate(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	expression := textArg(arguments, "expression")
	r, err := calc.Eval(expression)
	if e, ok := errors.AsType[*calc.Error](err); ok {
		return fail(calcTrouble(ctx, e))
	}
	if r.Exact {
		return tell(expression + " = " + r.Text)
	}
	return tell(expression + " ≈ " + r.Text)
}

// convert tells a quantity in another unit.
func convert(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	from, to := textArg(arguments, "from"), textArg(arguments, "to")
	answer, ok := measure.Convert(from, to, language(ctx))
	if !ok {
		return fail(say(ctx, "local/units-none", from, to))
	}
	return tell(answer)
}

// calcTrouble says what is wrong with an expression, and where.
func calcTrouble(ctx context.Context, e *calc.Error) string {
	near := cmp.Or(e.Near, say(ctx, "local/calc-end"))
	switch e.Cause {
	case calc.DivisionByZero:
		return say(ctx, "local/calc-zero", e.At)
	case calc.TooLarge:
		return say(ctx, "local/calc-large")
	case calc.Undefined:
		return say(ctx, "local/calc-undefined", e.At, near)
	case calc.Syntax:
	}
	return say(ctx, "local/calc-syntax", e.At, near)
}
