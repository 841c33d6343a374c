package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/executor"
)

func TestJSON(t *testing.T) {
	type param struct {
		Name string
		N    int
	}
	var got param
	h := executor.JSON(func(_ context.Context, _ *executor.Task, p param) error {
		got = p
		if p.Name == "boom" {
			return errBoom
		}
		return nil
	})
	for _, c := range []struct {
		in   string
		want param
		err  string // of a final failure
	}{
		{"", param{}, ""},
		{" \n", param{}, ""},
		{`{"name":"x","n":3}`, param{"x", 3}, ""},
		{`{"n":"three"}`, param{}, `param "{\"n\":\"three\"}" is not JSON for executor_test.param: json: cannot unmarshal string into Go struct field param.N of type int`},
		{`{"n":3`, param{}, `unexpected end of JSON input`},
		{`{} x`, param{}, `invalid character 'x' after top-level value`},
		{strings.Repeat("x", 1000), param{}, `param "` + strings.Repeat("x", 100) + `"... is not JSON`},
	} {
		got = param{}
		err := h(t.Context(), &executor.Task{Param: c.in})
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %+v, %v", c.in, got, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !executor.IsPermanent(err)):
			t.Errorf("%s: %v", c.in, err)
		}
	}
	if err := h(t.Context(), &executor.Task{Param: `{"name":"boom"}`}); err != errBoom {
		t.Errorf("the handler's own error: %v", err)
	}
}

func TestFail(t *testing.T) {
	err := executor.Permanent(errBoom)
	if err.Error() != "boom" || !errors.Is(err, errBoom) || !executor.IsPermanent(err) {
		t.Errorf("%v", err)
	}
	if !executor.IsPermanent(errors.Join(errBoom, fmt.Errorf("w: %w", err))) {
		t.Error("not seen through other errors")
	}
	if executor.IsPermanent(errBoom) || executor.IsPermanent(nil) || executor.Permanent(nil) != nil {
		t.Error("seen where it is not")
	}
}

func TestTaskLiteral(t *testing.T) {
	task := &executor.Task{RunID: 1}
	task.Log().Info("nowhere")
	if task.Result() != "" {
		t.Error("a result")
	}
	task.SetResult("x")
	if task.Log(); task.Result() != "x" {
		t.Errorf("result %q", task.Result())
	}
}
