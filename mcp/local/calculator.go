package local

import (
	"context"
	"errors"
	"fmt"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/calc"
)

// calculate works out an expression.
func calculate(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	expression := textArg(arguments, "expression")
	r, err := calc.Eval(expression, calc.Options{Number: spoken.LeadingDecimal})
	if err != nil {
		return fail(calcTrouble(ctx, err))
	}
	if r.Exact {
		return tell(expression + " = " + r.Text)
	}
	return tell(expression + " ≈ " + r.Text)
}

// calcTrouble says what is wrong with an expression, and where.
func calcTrouble(ctx context.Context, err error) string {
	e, ok := errors.AsType[*calc.Error](err)
	if !ok {
		return err.Error()
	}
	near := e.Near
	if near == "" {
		near = say(ctx, "末尾", "the end")
	}
	switch e.Cause {
	case calc.DivisionByZero:
		return fmt.Sprintf(say(ctx, "不能除以零（第 %d 个字符）", "division by zero (at sign %d)"), e.At)
	case calc.TooLarge:
		return say(ctx, "算式或数字太大了", "the expression or a number in it is too large")
	case calc.Undefined:
		return fmt.Sprintf(say(ctx, "没有结果：第 %d 个字符处的 %s", "there is no result: %[2]s at sign %[1]d"), e.At, near)
	case calc.Syntax:
	}
	return fmt.Sprintf(say(ctx, "看不懂算式：第 %d 个字符处的 %s", "the expression is not clear: %[2]s at sign %[1]d"), e.At, near)
}
