package wire_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// The bodies below are what Java peers of several generations send.
const (
	run342 = `{"jobId":7,"executorHandler":"demo","executorParams":"a=<b>&'","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":123,"logDateTime":1700000000123,"glueType":"BEAN","glueSource":"","glueUpdatetime":1600000000000,"broadcastIndex":0,"broadcastTotal":1}`
	run240 = `{"jobId":7,"executorHandler":"demo","executorParams":"a\u003d\u003cb\u003e\u0026\u0027","executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":0,"logId":123,"logDateTime":1700000000123,"glueType":"BEAN","glueSource":"","glueUpdatetime":1600000000000,"broadcastIndex":0,"broadcastTotal":1}`
)

var demoRun = wire.TriggerRequest{
	JobID: 7, ExecutorHandler: "demo", ExecutorParams: "a=<b>&'",
	ExecutorBlockStrategy: "SERIAL_EXECUTION", LogID: 123, LogDateTime: 1700000000123,
	GlueType: wire.GlueBean, GlueUpdatetime: 1600000000000, BroadcastTotal: 1,
}

func encode(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestMarshalGolden(t *testing.T) {
	nullRun := demoRun
	nullRun.ExecutorParams = ""
	ourRun := demoRun
	ourRun.ScheduledAt, ourRun.Attempt = 1700000000000, 2
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"run", demoRun, run342},
		{"run without parameter", nullRun, strings.Replace(run342, `"a=<b>&'"`, `""`, 1)},
		{"run of zero values", wire.TriggerRequest{}, `{"jobId":0,"executorHandler":"","executorParams":"","executorBlockStrategy":"","executorTimeout":0,"logId":0,` +
			`"logDateTime":0,"glueType":"","glueSource":"","glueUpdatetime":0,"broadcastIndex":0,"broadcastTotal":0}`},
		{"empty job", wire.UpdateJobRequest{ID: 3}, `{"id":3,"name":"","author":"","alarmEmail":"","scheduleType":"","scheduleConf":"","misfireStrategy":"",` +
			`"executorRouteStrategy":"","executorHandler":"","executorParam":"","executorBlockStrategy":"","executorTimeout":0,"executorFailRetryCount":0,` +
			`"glueType":"","glueSource":"","glueRemark":""}`},
		{"trigger of a job", wire.TriggerJobRequest{ID: 3}, `{"id":3,"executorParam":"","addressList":""}`},
		{"run of ours", ourRun, strings.TrimSuffix(run342, "}") + `,"scheduledAt":1700000000000,"attempt":2}`},
		{"idle beat", wire.IdleBeatRequest{JobID: 7}, `{"jobId":7}`},
		{"kill", wire.KillRequest{JobID: 7}, `{"jobId":7}`},
		{"kill one run", wire.KillRequest{JobID: 7, LogID: 9, Reason: "edited"}, `{"jobId":7,"logId":9,"reason":"edited"}`},
		{"log", wire.LogRequest{LogDateTim: 1700000000123, LogID: 123, FromLineNum: 1}, `{"logDateTim":1700000000123,"logId":123,"fromLineNum":1}`},
		{"registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "peer-app", RegistryValue: "http://127.0.0.1:19991/"},
			`{"registryGroup":"EXECUTOR","registryKey":"peer-app","registryValue":"http://127.0.0.1:19991/"}`},
		{"callback", []wire.CallbackRequest{{LogID: 6, LogDateTim: 1795216929140, HandleCode: 200}},
			`[{"logId":6,"logDateTim":1795216929140,"handleCode":200}]`},
		{"callback with message", []wire.CallbackRequest{{LogID: 12, LogDateTim: 1795216930214, HandleCode: 200, HandleMsg: "shard 1/3"}},
			`[{"logId":12,"logDateTim":1795216930214,"handleCode":200,"handleMsg":"shard 1/3"}]`},
		{"callback timeout", []wire.CallbackRequest{{LogID: 13, LogDateTim: 1795216930234, HandleCode: wire.CodeTimeout, HandleMsg: wire.MsgTimeout}},
			`[{"logId":13,"logDateTim":1795216930234,"handleCode":502,"handleMsg":"job execute timeout "}]`},
		{"callback for good", []wire.CallbackRequest{{LogID: 1, LogDateTim: 2, HandleCode: 500, HandleMsg: "no", NoRetry: true}},
			`[{"logId":1,"logDateTim":2,"handleCode":500,"handleMsg":"no","noRetry":true}]`},
		{"success", wire.Success(), `{"code":200,"msg":"Success"}`},
		{"bare success", wire.Return{Code: 200}, `{"code":200}`},
		{"busy", wire.Failf(wire.MsgBusy), `{"code":500,"msg":"job thread is running or has trigger queue."}`},
		{"wrong token", wire.Failf(wire.MsgTokenWrong), `{"code":500,"msg":"The access token is wrong."}`},
		{"nothing to kill", wire.Noted(wire.MsgAlreadyKilled),
			`{"code":200,"msg":"job thread already killed.","content":"job thread already killed.","data":"job thread already killed."}`},
		{"log answer", wire.LogReturn{Code: 200, Msg: "Success", Result: wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "a\nb\n"}},
			`{"code":200,"msg":"Success","content":{"fromLineNum":1,"toLineNum":2,"logContent":"a\nb\n","isEnd":false},"data":{"fromLineNum":1,"toLineNum":2,"logContent":"a\nb\n","isEnd":false}}`},
		{"log refused", wire.LogReturn{Code: 500, Msg: "no"}, `{"code":500,"msg":"no"}`},
	} {
		if got := encode(t, c.in); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestUnmarshalGolden(t *testing.T) {
	lines := wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "x"}
	for _, c := range []struct {
		name, in string
		want     any
	}{
		{"run 2.4.0", run240, demoRun},
		{"run 3.4.2", run342, demoRun},
		{"ids over 32 bits", `{"logId":9007199254740993,"jobId":2147483647}`, wire.TriggerRequest{LogID: 9007199254740993, JobID: 2147483647}},
		{"unknown keys", `{"jobId":7,"new":[1]}`, wire.KillRequest{JobID: 7}},
		{"log answer 2.4.0", `{"code":200,"content":{"fromLineNum":1,"toLineNum":2,"logContent":"x","isEnd":false}}`, wire.LogReturn{Code: 200, Result: lines}},
		{"log answer 3.4.2", `{"code":200,"msg":"Success","data":{"fromLineNum":1,"toLineNum":2,"logContent":"x","isEnd":false}}`, wire.LogReturn{Code: 200, Msg: "Success", Result: lines}},
		{"log answer null", `{"code":500,"msg":"no","content":null,"data":null}`, wire.LogReturn{Code: 500, Msg: "no"}},
		{"admin answer", `{"code":200,"msg":null,"content":null,"data":null}`, wire.Return{Code: 200}},
		{"empty answer", `{}`, wire.Return{}},
		{"callback with executeResult", `[{"logId":1,"logDateTim":1,"executeResult":{"code":200,"msg":"x"},"handleCode":200,"handleMsg":"x"}]`,
			[]wire.CallbackRequest{{LogID: 1, LogDateTim: 1, HandleCode: 200, HandleMsg: "x"}}},
	} {
		got := reflect.New(reflect.TypeOf(c.want))
		if err := json.Unmarshal([]byte(c.in), got.Interface()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !reflect.DeepEqual(got.Elem().Interface(), c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got.Elem().Interface(), c.want)
		}
	}
	var r wire.LogReturn
	if err := json.Unmarshal([]byte(`{"code":200,"data":"text"}`), &r); err == nil {
		t.Error("a log answer with a text for a payload was read")
	}
}

func TestOK(t *testing.T) {
	for code, want := range map[int]bool{200: true, 0: false, 500: false, 502: false} {
		if (wire.Return{Code: code}).OK() != want || (wire.LogReturn{Code: code}).OK() != want {
			t.Errorf("code %d: OK is not %v", code, want)
		}
	}
}

func FuzzLogReturn(f *testing.F) {
	f.Add([]byte(`{"code":200,"data":{"fromLineNum":1,"toLineNum":2,"logContent":"x","isEnd":false}}`))
	f.Add([]byte(`{"code":200,"content":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a, c wire.LogReturn
		if json.Unmarshal(b, &a) != nil {
			return
		}
		out, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &c); err != nil {
			t.Fatal(err)
		}
		if a.OK() && a != c {
			t.Fatalf("%+v came back as %+v", a, c)
		}
	})
}

// TestProgressTravels: as a further key, which is not there where nothing was said, so that
// other peers get what they always got.
func TestProgressTravels(t *testing.T) {
	half := wire.Progress{Percent: 50, Text: "half <of it>\n"}
	const key = `"progress":{"percent":50,"text":"half <of it>\n"}`
	for _, c := range []struct {
		name   string
		encode func(wire.Progress) string
		none   string
	}{
		{"log", func(p wire.Progress) string {
			return string(wire.LogReturn{Code: 200, Result: wire.LogResult{FromLineNum: 1, LogContent: "x", Progress: p}}.Encode(nil))
		}, `{"code":200,"content":{"fromLineNum":1,"toLineNum":0,"logContent":"x","isEnd":false},"data":{"fromLineNum":1,"toLineNum":0,"logContent":"x","isEnd":false}}`},
		{"callback of G1 to G3", func(p wire.Progress) string {
			return string(wire.EncodeCallback(nil, wire.CallbackList, []wire.CallbackRequest{{LogID: 6, LogDateTim: 5, HandleCode: 200, Progress: p}}))
		}, `[{"logId":6,"logDateTim":5,"handleCode":200,"executeResult":{"code":200}}]`},
		{"callback of G4", func(p wire.Progress) string {
			return string(wire.EncodeCallback(nil, wire.CallbackObject, []wire.CallbackRequest{{LogID: 6, LogDateTim: 5, HandleCode: 200, Progress: p}}))
		}, `{"callbackList":[{"logId":6,"logDateTime":5,"handleCode":200}]}`},
	} {
		if got := c.encode(wire.Progress{}); got != c.none {
			t.Errorf("%s without progress:\n got %s\nwant %s", c.name, got, c.none)
		}
		got := c.encode(half)
		if n := strings.Count(got, key); n != 1 && (n != 2 || c.name != "log") || strings.ReplaceAll(got, ","+key, "") != c.none {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	if got := encode(t, wire.LogResult{Progress: wire.Progress{Text: "begun"}}); !strings.Contains(got, `"progress":{"percent":0,"text":"begun"}`) {
		t.Errorf("at 0 %%: %s", got)
	}
}

// TestProgressIsRead: whatever stands under the key, the result and the log that it comes
// with are read.
func TestProgressIsRead(t *testing.T) {
	for in, want := range map[string]wire.Progress{
		`{"percent":50,"text":"half"}`:    {Percent: 50, Text: "half"},
		`{"percent":"50","more":[{}]}`:    {Percent: 50},
		`{"text":null,"percent":null}`:    {},
		`{"percent":1e9}`:                 {Percent: 1e9}, // to be bounded by who reads it
		`{"percent":-1}`:                  {Percent: -1},
		`{"percent":1e99,"text":"x"}`:     {},
		`{"percent":9223372036854775808}`: {},
		`{"percent":0.5}`:                 {},
		`{"percent":50,"percent":51}`:     {},
		`{"percent":{}}`:                  {},
		`null`:                            {},
		`50`:                              {},
		`"50 %"`:                          {},
		`[50]`:                            {},
		`{}`:                              {},
		`{"text":"` + strings.Repeat("x", 9) + `"}`: {Text: "xxxxxxxxx"},
	} {
		results, err := wire.DecodeCallback([]byte(`[{"logId":6,"handleCode":200,"progress":` + in + `}]`))
		if err != nil || len(results) != 1 || results[0] != (wire.CallbackRequest{LogID: 6, HandleCode: 200, Progress: want}) {
			t.Errorf("callback with %s: %+v, %v", in, results, err)
		}
		var log wire.LogReturn
		if err := log.Decode([]byte(`{"code":200,"data":{"toLineNum":2,"progress":` + in + `}}`)); err != nil || log.Result != (wire.LogResult{ToLineNum: 2, Progress: want}) {
			t.Errorf("log with %s: %+v, %v", in, log, err)
		}
	}
}
