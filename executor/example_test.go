package executor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// printer is an admin that prints results.
type printer struct{ admin }

func (*printer) Callback(_ context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	for _, r := range results {
		fmt.Println("run", r.LogID, "ended with", r.HandleCode, r.HandleMsg)
	}
	return wire.Success(), nil
}

func Example() {
	e, err := executor.New(executor.Config{App: "billing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Bind(new(printer))
	err = e.Handle("greet", func(ctx context.Context, t *executor.Task) error {
		t.Log().Info("greeting", "whom", t.Param)
		t.SetResult("hello " + t.Param)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	answer, _ := e.Run(ctx, wire.TriggerRequest{JobID: 1, LogID: 1001, ExecutorHandler: "greet", ExecutorParams: "world"})
	fmt.Println("accepted:", answer.OK())
	if err := e.Stop(ctx); err != nil { // waits for the run and its result
		fmt.Println(err)
	}
	// Unordered output:
	// accepted: true
	// run 1001 ended with 200 hello world
}

func ExampleJSON() {
	type invoice struct {
		Customer string `json:"customer"`
		Cents    int    `json:"cents"`
	}
	h := executor.JSON(func(ctx context.Context, t *executor.Task, in invoice) error {
		fmt.Println(in.Customer, "owes", in.Cents)
		return nil
	})
	ctx := context.Background()
	fmt.Println(h(ctx, &executor.Task{Param: `{"customer":"Ada","cents":1250}`}))
	err := h(ctx, &executor.Task{Param: `{"customer":7}`})
	fmt.Println(executor.IsFail(err), err)
	// Output:
	// Ada owes 1250
	// <nil>
	// true param "{\"customer\":7}" is not JSON for executor_test.invoice: json: cannot unmarshal number into Go struct field invoice.customer of type string
}

func ExampleFail() {
	errGone := errors.New("the account is closed")
	err := executor.Fail(errGone)
	fmt.Println(err, executor.IsFail(err), errors.Is(err, errGone))
	// Output: the account is closed true true
}
