package wire_test

import (
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

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
