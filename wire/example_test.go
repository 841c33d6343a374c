package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/xxljob/xxljob/wire"
)

func ExampleReturn() {
	for _, body := range []string{`{"code":200,"msg":"Success"}`, `{"code":500,"msg":"job handler [nightly] not found."}`, `{}`} {
		var r wire.Return
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			fmt.Println("unknown:", err)
			continue
		}
		fmt.Println(r.OK(), r.Msg)
	}
	// Output:
	// true Success
	// false job handler [nightly] not found.
	// false
}

func ExampleLogReturn() {
	answer := wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: 1, ToLineNum: 1, LogContent: "hello\n"}}
	b, _ := json.Marshal(answer)
	fmt.Println(string(b))
	// Output:
	// {"code":200,"content":{"fromLineNum":1,"toLineNum":1,"logContent":"hello\n","isEnd":false},"data":{"fromLineNum":1,"toLineNum":1,"logContent":"hello\n","isEnd":false}}
}

// An admin of the host's own, and an executor that registers with it.
func ExampleNewAdminHandler() {
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{"billing": {"a long secret"}}})
	if err != nil {
		panic(err)
	}
	api, err := wire.NewAdminHandler(exampleAdmin{}, wire.HandlerConfig{Authorize: keys.Authorize})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/xxl-job-admin/", api)
	srv := httptest.NewServer(mux)
	defer srv.Close()

	for _, token := range []string{"a long secret", "default_token"} {
		admin, err := wire.NewAdminClient(srv.URL+"/xxl-job-admin", wire.ClientConfig{App: "billing", Token: token})
		if err != nil {
			panic(err)
		}
		answer, err := admin.Registry(context.Background(), wire.RegistryRequest{
			RegistryGroup: wire.GroupExecutor, RegistryKey: "billing", RegistryValue: "http://10.0.0.7:9999/"})
		fmt.Println(answer.OK(), answer.Msg, err)
	}
	// Output:
	// true Success <nil>
	// false invalid request, accessToken or appname invalid. <nil>
}

// exampleAdmin agrees to everything.
type exampleAdmin struct{}

func (exampleAdmin) Callback(context.Context, []wire.CallbackRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (exampleAdmin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (exampleAdmin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}
