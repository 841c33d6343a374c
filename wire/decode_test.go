package wire_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// message is what every message can do, by pointer.
type message interface {
	Decode(src []byte) error
	Encode(dst []byte) []byte
}

var definition = wire.JobDefinition{
	Name: "n", Author: "a", AlarmEmail: "x@y", ScheduleType: "CRON", ScheduleConf: "0 0 0 * * ?",
	MisfireStrategy: "DO_NOTHING", ExecutorRouteStrategy: "ROUND", ExecutorHandler: "h", ExecutorParam: "p",
	ExecutorBlockStrategy: "SERIAL_EXECUTION", ExecutorTimeout: 3, ExecutorFailRetryCount: 2,
	GlueType: "BEAN", GlueSource: "s", GlueRemark: "r",
}

const definitionJSON = `"name":"n","author":"a","alarmEmail":"x@y","scheduleType":"CRON","scheduleConf":"0 0 0 * * ?",` +
	`"misfireStrategy":"DO_NOTHING","executorRouteStrategy":"ROUND","executorHandler":"h","executorParam":"p",` +
	`"executorBlockStrategy":"SERIAL_EXECUTION","executorTimeout":3,"executorFailRetryCount":2,` +
	`"glueType":"BEAN","glueSource":"s","glueRemark":"r"`

// TestMessages has every message with all its fields: it is encoded as said, and
// decoded to what it was.
func TestMessages(t *testing.T) {
	run := demoRun
	run.ExecutorTimeout, run.GlueSource, run.BroadcastIndex, run.BroadcastTotal = 60, "echo\n\"1\"", 1, 3
	run.ScheduledAt, run.Attempt, run.BootID = 1700000000000, 2, "b-1"
	run.JobName, run.JobKey, run.App, run.Route, run.JobVersion, run.TriggerType = "nightly <1>", "k", "billing", "ROUND", 1<<40, "CRON"
	run.Traceparent, run.Tracestate = "00-1-2-01", "a=b,c=d"
	run.Zone, run.ZoneOffset, run.TriggerID, run.ParentID = "America/New_York", -18000, 121, 99
	run.BusinessTime, run.WindowStart, run.WindowEnd, run.FirstAt, run.LastAt, run.Count = 1, 2, 3, 4, 5, 6
	run.Instants, run.PreviousAt = "4,5", 7
	for _, c := range []struct {
		in   message
		want string
	}{
		{&run, `{"jobId":7,"executorHandler":"demo","executorParams":"a=<b>&'","executorBlockStrategy":"SERIAL_EXECUTION",` +
			`"executorTimeout":60,"logId":123,"logDateTime":1700000000123,"glueType":"BEAN","glueSource":"echo\n\"1\"",` +
			`"glueUpdatetime":1600000000000,"broadcastIndex":1,"broadcastTotal":3,"scheduledAt":1700000000000,"attempt":2,"bootId":"b-1",` +
			`"jobName":"nightly <1>","jobKey":"k","app":"billing","route":"ROUND","jobVersion":1099511627776,"triggerType":"CRON","traceparent":"00-1-2-01","tracestate":"a=b,c=d",` +
			`"zone":"America/New_York","zoneOffset":-18000,"triggerId":121,"parentId":99,"businessTime":1,"windowStart":2,"windowEnd":3,"firstAt":4,"lastAt":5,"count":6,"instants":"4,5","previousAt":7}`},
		{&wire.IdleBeatRequest{JobID: 7}, `{"jobId":7}`},
		{&wire.KillRequest{JobID: 7, LogID: 9, Reason: "why", Shutdown: true}, `{"jobId":7,"logId":9,"reason":"why","shutdown":true}`},
		{&wire.LogRequest{LogDateTim: 5, LogID: 6, FromLineNum: 7}, `{"logDateTim":5,"logId":6,"fromLineNum":7,"logDateTime":5}`},
		{&wire.LogRequest{LogDateTim: 5, LogID: 6, FromLineNum: 7, Tail: 8}, `{"logDateTim":5,"logId":6,"fromLineNum":7,"tail":8,"logDateTime":5}`},
		{&wire.LogReturn{Code: 200, Msg: "m", Result: wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "<>", Tail: true}},
			`{"code":200,"msg":"m","content":{"fromLineNum":1,"toLineNum":2,"logContent":"<>","isEnd":false,"tail":true},` +
				`"data":{"fromLineNum":1,"toLineNum":2,"logContent":"<>","isEnd":false,"tail":true}}`},
		{&wire.LogReturn{Code: 200, Msg: "m", Result: wire.LogResult{FromLineNum: 1, ToLineNum: 2, LogContent: "<>", IsEnd: true}},
			`{"code":200,"msg":"m","content":{"fromLineNum":1,"toLineNum":2,"logContent":"<>","isEnd":true},` +
				`"data":{"fromLineNum":1,"toLineNum":2,"logContent":"<>","isEnd":true}}`},
		{&wire.Return{Code: 500, Msg: "m", Content: "c", Data: "d"}, `{"code":500,"msg":"m","content":"c","data":"d"}`},
		{&wire.RegistryRequest{RegistryGroup: "EXECUTOR", RegistryKey: "k", RegistryValue: "v", BootID: "b", Capabilities: []string{wire.CapRepeat}},
			`{"registryGroup":"EXECUTOR","registryKey":"k","registryValue":"v","bootId":"b","capabilities":["repeat"]}`},
		{&wire.AddJobRequest{JobGroup: 3, JobDefinition: definition}, `{"jobGroup":3,` + definitionJSON + `}`},
		{&wire.UpdateJobRequest{ID: 4, JobDefinition: definition}, `{"id":4,` + definitionJSON + `}`},
		{&wire.JobRequest{ID: 4}, `{"id":4}`},
		{&wire.TriggerJobRequest{ID: 4, ExecutorParam: "p", AddressList: "http://a:1"}, `{"id":4,"executorParam":"p","addressList":"http://a:1"}`},
	} {
		if got := string(c.in.Encode([]byte("head "))); got != "head "+c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.in, got, "head "+c.want)
		}
		got := reflect.New(reflect.TypeOf(c.in).Elem())
		if err := got.Interface().(message).Decode([]byte(c.want)); err != nil || !reflect.DeepEqual(got.Interface(), c.in) {
			t.Errorf("%T: decoded %+v, %v", c.in, got.Elem(), err)
		}
	}
}

// TestDecodeForgets says that Decode leaves nothing of what was there before.
func TestDecodeForgets(t *testing.T) {
	for _, m := range []message{
		&wire.TriggerRequest{JobID: 1}, &wire.IdleBeatRequest{JobID: 1}, &wire.KillRequest{LogID: 1}, &wire.LogRequest{LogID: 1},
		&wire.LogReturn{Code: 1}, &wire.Return{Msg: "x"}, &wire.RegistryRequest{RegistryKey: "x"}, &wire.AddJobRequest{JobGroup: 1},
		&wire.UpdateJobRequest{ID: 1}, &wire.JobRequest{ID: 1}, &wire.TriggerJobRequest{ID: 1},
	} {
		if err := m.Decode([]byte("{}")); err != nil || !reflect.ValueOf(m).Elem().IsZero() {
			t.Errorf("%T: %+v, %v", m, m, err)
		}
	}
}

func TestEncodeCallback(t *testing.T) {
	results := []wire.CallbackRequest{{LogID: 1, LogDateTim: 2, HandleCode: 200}, {LogID: 3, LogDateTim: 4, HandleCode: 500, HandleMsg: "<m>", NoRetry: true, Killed: true, Shutdown: true, RetryIn: 1500, SnoozeIn: 60_000}}
	for form, want := range map[wire.CallbackForm]string{
		wire.CallbackList: `[{"logId":1,"logDateTim":2,"handleCode":200,"executeResult":{"code":200}},` +
			`{"logId":3,"logDateTim":4,"handleCode":500,"handleMsg":"<m>","noRetry":true,"killed":true,"shutdown":true,"retryIn":1500,"snoozeIn":60000,"executeResult":{"code":500,"msg":"<m>"}}]`,
		wire.CallbackObject: `{"callbackList":[{"logId":1,"logDateTime":2,"handleCode":200},` +
			`{"logId":3,"logDateTime":4,"handleCode":500,"handleMsg":"<m>","noRetry":true,"killed":true,"shutdown":true,"retryIn":1500,"snoozeIn":60000}]}`,
	} {
		out := wire.EncodeCallback(nil, form, results)
		if string(out) != want {
			t.Errorf("form %d:\n got %s\nwant %s", form, out, want)
		}
		if got, err := wire.DecodeCallback(out); err != nil || !reflect.DeepEqual(got, results) {
			t.Errorf("form %d: decoded %+v, %v", form, got, err)
		}
	}
}

// TestLenient has what Java peers let pass too.
func TestLenient(t *testing.T) {
	for in, want := range map[string]any{
		` {"jobId":"7"} `:                       wire.KillRequest{JobID: 7},
		`{"jobId":7.0}`:                         wire.KillRequest{JobID: 7},
		`{"jobId":7e0,"logId":null}`:            wire.KillRequest{JobID: 7},
		`{"jobId":7,"reason":12}`:               wire.KillRequest{JobID: 7, Reason: "12"},
		`{"jobId":7,"reason":null}`:             wire.KillRequest{JobID: 7},
		`{"x":{"y":[1,{"z":"}"}]},"jobId" : 7}`: wire.KillRequest{JobID: 7},
		`{"reason":"\u00e9\\ \"\n"}`:            wire.KillRequest{Reason: "é\\ \"\n"},
		"{\"reason\":\"\xff\"}":                 wire.KillRequest{Reason: "\uFFFD"},
		"{\"reason\":\"\\n\xff\"}":              wire.KillRequest{Reason: "\n\uFFFD"},
		`{"JOBID":1,"jobId":7}`:                 wire.KillRequest{JobID: 7},
		`{"jobId":-2147483648}`:                 wire.KillRequest{JobID: -1 << 31},
		`{"logId":9223372036854775807}`:         wire.KillRequest{LogID: 1<<63 - 1},
		`{"jobId":7,}`:                          wire.KillRequest{JobID: 7},
		"\uFEFF{jobId:'7', reason:\"a\nb\"}":    wire.KillRequest{JobID: 7, Reason: "a\nb"},
		"/* ok */ {\"code\":200}":               wire.Return{Code: 200},
		`{"code":"200"}`:                        wire.Return{Code: 200},
		`{}`:                                    wire.Return{},
		`{"code":500,"msg":null,"data":12}`:     wire.Return{Code: 500, Data: "12"},
	} {
		got := reflect.New(reflect.TypeOf(want))
		if err := got.Interface().(message).Decode([]byte(in)); err != nil || got.Elem().Interface() != want {
			t.Errorf("%s: got %+v, %v, want %+v", in, got.Elem(), err, want)
		}
	}
}

// malformed are bodies that are wrong for every message that is an object and
// has a jobId.
var malformed = map[string]string{
	"empty":             "",
	"blank":             " \r\n\t",
	"null":              "null",
	"a string":          `"jobId"`,
	"a number":          "7",
	"a list":            "[]",
	"no JSON":           "jobId=7",
	"cut off":           `{"jobId":7`,
	"trailing garbage":  `{"jobId":7} x`,
	"two values":        `{"jobId":7}{"jobId":7}`,
	"two commas":        `{"jobId":7,,}`,
	"binary":            "\x00\x01\xfe",
	"twice":             `{"jobId":7,"jobId":8}`,
	"twice, escaped":    `{"jobId":7,"job\u0049d":8}`,
	"unknown twice":     `{"jobId":7,"x":1,"x":2}`,
	"word for number":   `{"jobId":"seven"}`,
	"empty for number":  `{"jobId":""}`,
	"object for number": `{"jobId":{}}`,
	"list for number":   `{"jobId":[7]}`,
	"bool for number":   `{"jobId":true}`,
	"fraction":          `{"jobId":7.5}`,
	"33 bits":           `{"jobId":2147483648}`,
	"65 bits":           `{"jobId":9223372036854775808}`,
	"huge exponent":     `{"jobId":1e99}`,
	"not a number":      `{"jobId":"NaN"}`,
	"infinite":          `{"jobId":"Inf"}`,
	"too deep":          `{"jobId":7,"x":` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `}`,
	"far too deep":      strings.Repeat(`{"x":`, 100_000),
	"too many keys":     manyKeys(300),
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteString(`{"jobId":7`)
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return b.String() + "}"
}

func TestMalformed(t *testing.T) {
	for name, in := range malformed {
		for _, m := range []message{&wire.TriggerRequest{}, &wire.IdleBeatRequest{}, &wire.KillRequest{}} {
			err := m.Decode([]byte(in))
			if err == nil {
				t.Errorf("%s: %T was read as %+v", name, m, m)
			} else if len(err.Error()) > 200 || strings.Contains(err.Error(), "goroutine") {
				t.Errorf("%s: %T: words for the peer: %q", name, m, err)
			}
		}
	}
}

func TestMalformedCallback(t *testing.T) {
	for name, in := range map[string]string{
		"empty": "", "null": "null", "object without a list": "{}", "null for a list": `{"callbackList":null}`,
		"object for a list": `{"callbackList":{}}`, "null for a result": "[null]", "number for a result": "[1]", "list for a result": "[[]]",
		"word for a code": `[{"logId":1,"handleCode":"ok"}]`, "object for a text": `[{"logId":1,"handleMsg":{}}]`,
		"string for an old result": `[{"logId":1,"executeResult":"ok"}]`, "word for a flag": `[{"logId":1,"killed":"perhaps"}]`,
		"trailing garbage": "[]]", "twice": `[{"logId":1,"logId":2}]`, "two lists": `{"callbackList":[],"callbackList":[]}`,
		"too many": "[" + strings.Repeat(`{},`, wire.MaxCallbacks) + "{}]",
	} {
		if got, err := wire.DecodeCallback([]byte(in)); err == nil {
			t.Errorf("%s: read as %d results", name, len(got))
		}
	}
	most := "[" + strings.Repeat(`{},`, wire.MaxCallbacks-1) + "{}]"
	if got, err := wire.DecodeCallback([]byte(most)); err != nil || len(got) != wire.MaxCallbacks {
		t.Errorf("%d results: %d, %v", wire.MaxCallbacks, len(got), err)
	}
}

// TestMalformedAnswers has what is neither accepted nor refused.
func TestMalformedAnswers(t *testing.T) {
	for name, in := range map[string]string{
		"empty": "", "blank": "\n", "null": "null", "text": `"ok"`, "number": "200", "page": "<html>404</html>",
		"object for a note": `{"code":200,"data":{}}`, "list for a note": `{"code":200,"content":[]}`, "word for a code": `{"code":"OK"}`,
		"list": "[]", "list of texts": `["no"]`, "list of a success": `[{"logId":1,"handleCode":200}]`, "list without a result": `[{"logId":1}]`,
		"trailing garbage": `{"code":200} {"code":500}`, "twice": `{"code":200,"code":500}`,
	} {
		var r wire.Return
		if err := r.Decode([]byte(in)); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
	for name, in := range map[string]string{
		"empty": "", "list": "[]", "text for a result": `{"code":200,"data":"text"}`, "list for a result": `{"code":200,"content":[]}`,
		"text for a line number": `{"code":200,"data":{"toLineNum":"two"}}`, "word for a flag": `{"code":200,"data":{"isEnd":2}}`,
	} {
		var r wire.LogReturn
		if err := r.Decode([]byte(in)); err == nil {
			t.Errorf("log: %s: read as %+v", name, r)
		}
	}
}
