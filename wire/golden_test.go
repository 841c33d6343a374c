package wire_test

import (
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// goldenRequests are what peers of several generations send.
var goldenRequests = map[string]struct {
	path string // of its endpoint
	want any    // what it says
	same bool   // whether ours has the same bytes
}{
	"run-2.4.0": {"/run", demoRun, false},
	"run-3.4.2": {"/trigger", demoRun, true},
	"run-empty-3.4.2": {"/trigger", wire.TriggerRequest{
		JobID: 7, ExecutorHandler: "demo", ExecutorBlockStrategy: "SERIAL_EXECUTION", LogID: 123,
		LogDateTime: 1700000000123, GlueType: wire.GlueBean, GlueUpdatetime: 1600000000000, BroadcastTotal: 1}, true},
	"run-null": {"/run", wire.TriggerRequest{
		JobID: 7, ExecutorHandler: "demo", ExecutorBlockStrategy: "SERIAL_EXECUTION", LogID: 123,
		LogDateTime: 1700000000123, GlueType: wire.GlueBean, GlueUpdatetime: 1600000000000, BroadcastTotal: 1}, false},
	"kill":     {"/kill", wire.KillRequest{JobID: 7}, true},
	"idleBeat": {"/idleBeat", wire.IdleBeatRequest{JobID: 7}, true},
	"log-g2":   {"/log", wire.LogRequest{LogDateTim: 1700000000123, LogID: 123, FromLineNum: 1}, false},
	"log-g4":   {"/log", wire.LogRequest{LogDateTim: 1700000000123, LogID: 123, FromLineNum: 1}, false},
	"registry": {"/api/registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "peer-app", RegistryValue: "http://127.0.0.1:19991/"}, true},
	"callback-g1": {"/api/callback", []wire.CallbackRequest{
		{LogID: 6, LogDateTim: 1795216929140, HandleCode: 500, HandleMsg: "no"}}, false},
	"callback-g2": {"/api/callback", []wire.CallbackRequest{{LogID: 6, LogDateTim: 1795216929140, HandleCode: 200}}, false},
	"callback-g2-msg": {"/api/callback", []wire.CallbackRequest{
		{LogID: 12, LogDateTim: 1795216930214, HandleCode: 200, HandleMsg: "shard 1/3"}}, false},
	"callback-g2-timeout": {"/api/callback", []wire.CallbackRequest{
		{LogID: 13, LogDateTim: 1795216930234, HandleCode: wire.CodeTimeout, HandleMsg: wire.MsgTimeout}}, false},
	"callback-g2-kill": {"/api/callback", []wire.CallbackRequest{
		{LogID: 14, LogDateTim: 1795216930250, HandleCode: 500, HandleMsg: "scheduling center kill job. [job running, killed]"},
		{LogID: 15, LogDateTim: 1795216930260, HandleCode: 500, HandleMsg: "scheduling center kill job. [job not executed, in the job queue, killed.]"}}, false},
	"callback-g4": {"/xxl-job-admin/api/callback", []wire.CallbackRequest{{LogID: 6, LogDateTim: 1795217022315, HandleCode: 200}}, false},
	"callback-go": {"/api/callback", []wire.CallbackRequest{{LogID: 1, LogDateTim: 1, HandleCode: 200, HandleMsg: "x"}}, false},
}

// TestGoldenRequests sends each body to a handler and looks at what arrives,
// and at what of ours has the same meaning.
func TestGoldenRequests(t *testing.T) {
	for name, c := range goldenRequests {
		p := newPeer()
		h := executorHandler(t, p, config(t))
		switch c.want.(type) {
		case wire.RegistryRequest, []wire.CallbackRequest:
			h = adminHandler(t, p, config(t))
		}
		in := body(t, name)
		if r := returned(t, post(t, h, c.path, in)); !r.OK() {
			t.Errorf("%s: answered %+v", name, r)
			continue
		}
		if !reflect.DeepEqual(p.last(), c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, p.last(), c.want)
		}
		if ours, ok := c.want.(interface{ Encode([]byte) []byte }); ok && c.same {
			if got := string(ours.Encode(nil)); got != in {
				t.Errorf("%s: ours is\n     %s\nwant %s", name, got, in)
			}
		}
	}
}

// goldenAnswers are what executors and admins of several generations answer.
var goldenAnswers = map[string]wire.Return{
	"answer-success-3.1.1":    {Code: 200},
	"answer-success-3.2.0":    wire.Success(),
	"answer-busy":             wire.Failf(wire.MsgBusy),
	"answer-token-wrong":      wire.Failf(wire.MsgTokenWrong),
	"answer-identity-empty":   wire.Failf(wire.MsgIdentityEmpty),
	"answer-identity-invalid": wire.Failf(wire.MsgIdentityInvalid),
	"answer-kill-2.4.0":       {Code: 200, Msg: wire.MsgAlreadyKilled},
	"answer-kill-3.2.0":       {Code: 200, Msg: "Success", Content: wire.MsgAlreadyKilled},
	"answer-kill-3.4.2":       {Code: 200, Msg: "Success", Data: wire.MsgAlreadyKilled},
	"answer-admin-3.1":        {Code: 200},
	"answer-admin-3.2.0":      wire.Success(),
	"answer-admin-3.4.2":      wire.Success(),
}

func TestGoldenAnswers(t *testing.T) {
	for name, want := range goldenAnswers {
		srv := serveText(t, body(t, name))
		got, err := executorClient(t, srv.URL, wire.ClientConfig{}).Kill(t.Context(), wire.KillRequest{JobID: 7})
		if err != nil || got != want {
			t.Errorf("%s: executor: got %+v, %v, want %+v", name, got, err, want)
		}
		got, err = adminClient(t, srv.URL, wire.ClientConfig{}).Registry(t.Context(), wire.RegistryRequest{})
		if err != nil || got != want {
			t.Errorf("%s: admin: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestGoldenLogAnswers(t *testing.T) {
	for name, want := range map[string]wire.LogReturn{
		"answer-log-2.4.0":     {Code: 200, Result: wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "…"}},
		"answer-log-3.4.2":     {Code: 200, Msg: "Success", Result: wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "…"}},
		"answer-log-end-3.2.0": {Code: 200, Result: wire.LogResult{FromLineNum: 18, ToLineNum: 17}},
		"answer-log-end-3.4.2": {Code: 200, Msg: "Success", Result: wire.LogResult{FromLineNum: 18}},
		"answer-log-none":      {Code: 200, Msg: "Success", Result: wire.LogResult{FromLineNum: 1, LogContent: wire.MsgNoLog, IsEnd: true}},
		"answer-busy":          {Code: 500, Msg: wire.MsgBusy},
	} {
		srv := serveText(t, body(t, name))
		got, err := executorClient(t, srv.URL, wire.ClientConfig{}).Log(t.Context(), wire.LogRequest{LogID: 1})
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// TestGoldenOurAnswers has the answers of our handlers, to the byte.
func TestGoldenOurAnswers(t *testing.T) {
	p := newPeer()
	executor, admin := executorHandler(t, p, config(t)), adminHandler(t, p, config(t))
	p.log.Result = wire.LogResult{FromLineNum: 1, ToLineNum: 1, LogContent: "<b>\n"}
	for _, c := range []struct {
		h            http.Handler
		path, golden string
		ret          wire.Return
		want         string
	}{
		{executor, "/run", "run-3.4.2", wire.Success(), body(t, "answer-success-3.2.0")},
		{executor, "/run", "run-3.4.2", wire.Return{Code: 200}, body(t, "answer-success-3.1.1")},
		{executor, "/idleBeat", "idleBeat", wire.Failf(wire.MsgBusy), body(t, "answer-busy")},
		{executor, "/kill", "kill", wire.Noted(wire.MsgAlreadyKilled),
			`{"code":200,"msg":"job thread already killed.","content":"job thread already killed.","data":"job thread already killed."}`},
		{executor, "/log", "log-g2", wire.Return{}, `{"code":200,"msg":"Success",` +
			`"content":{"fromLineNum":1,"toLineNum":1,"logContent":"<b>\n","isEnd":false},` +
			`"data":{"fromLineNum":1,"toLineNum":1,"logContent":"<b>\n","isEnd":false}}`},
		{admin, "/api/registry", "registry", wire.Success(), `{"code":200,"msg":"Success","content":null,"data":null}`},
		{admin, "/api/registry", "registry", wire.Return{Code: 200}, `{"code":200,"msg":null,"content":null,"data":null}`},
		{admin, "/api/registry", "registry", wire.Return{Code: 200, Data: "12"}, `{"code":200,"msg":null,"content":null,"data":"12"}`},
	} {
		p.ret = c.ret
		if got := post(t, c.h, c.path, body(t, c.golden)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.path, got, c.want)
		}
	}
}

// TestGoldenRunGo is the answer of the Go client xxl-job-executor-go when it
// refuses a run.
func TestGoldenRunGo(t *testing.T) {
	want := body(t, "answer-run-go")
	srv := serve(t, func(w http.ResponseWriter, _ string, _ int) { io.WriteString(w, want) })
	got, err := executorClient(t, srv.URL, wire.ClientConfig{}).Run(t.Context(), demoRun)
	if err != nil || got != (wire.Return{Code: wire.CodeFail, Msg: want}) {
		t.Errorf("got %+v, %v, want a refusal with the text", got, err)
	}
}
