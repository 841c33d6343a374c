package executor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

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
	fmt.Println(executor.IsPermanent(err), err)
	// Output:
	// Ada owes 1250
	// <nil>
	// true param "{\"customer\":7}" is not JSON for executor_test.invoice: json: cannot unmarshal number into Go struct field invoice.customer of type string
}

func ExamplePermanent() {
	errGone := errors.New("the account is closed")
	err := executor.Permanent(errGone)
	fmt.Println(err, executor.IsPermanent(err), errors.Is(err, errGone))
	// Output: the account is closed true true
}

// An executor in the host's own mux, for an admin that is told its address by
// hand or by registration.
func ExampleExecutor_HTTPHandler() {
	e, err := executor.New(executor.Config{
		App:     "billing",
		Address: "http://10.0.0.7:8080/jobs/", // of the mux, with the prefix
		Admins: []executor.AdminCluster{{
			Addresses: []string{"http://10.0.0.1:8080/xxl-job-admin", "http://10.0.0.2:8080/xxl-job-admin"},
			Token:     "the token of the admin",
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := e.HTTPHandler()
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/jobs/", h)

	// e.Start would register now, and e.Stop take that back. A caller without the
	// token is refused, with the status that the protocol's peers expect.
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/jobs/beat", nil))
	fmt.Println(answer.Code, answer.Body)
	// Output: 200 {"code":500,"msg":"The access token is wrong."}
}

// A process that only executes: a server of its own, registered with an admin,
// until it is interrupted. Results survive it.
func ExampleExecutor_Serve() {
	ctx, interrupt := context.WithCancel(context.Background()) // signal.NotifyContext in real life
	defer interrupt()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("admin:", r.URL.Path) // in place of a real one
		fmt.Fprint(w, `{"code":200}`)
		interrupt()
	}))
	defer admin.Close()

	e, err := executor.New(executor.Config{
		App:    "billing",
		Addr:   "127.0.0.1:0", // ":9999" in real life
		Admins: []executor.AdminCluster{{Addresses: []string{admin.URL}, Token: "the token of the admin"}},
		// SpoolDir: "/var/lib/billing/results",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = e.Handle("greet", func(ctx context.Context, t *executor.Task) error {
		t.Log().Info("hello", "whom", t.Param)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Serve(ctx))
	// Output:
	// admin: /api/registry
	// admin: /api/registryRemove
	// <nil>
}
