package xxljobtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/xxljob/xxljob/wire"
)

// Generation is a generation of XXL-JOB's protocol, numbered as in package wire.
type Generation int

const (
	// G1 is XXL-JOB 2.2, which reports results in the key executeResult.
	G1 Generation = 1 + iota
	// G2 is XXL-JOB 2.3 to 3.2. Where releases differ, it behaves like 2.5.
	G2
	// G3 is XXL-JOB 3.3 and 3.4, which answer with the key data instead of content.
	G3
	// G4 is XXL-JOB 3.5, which takes runs at /trigger instead of /run, and demands a token and
	// the name of the app in every request.
	G4
)

// String returns "G1" to "G4".
func (g Generation) String() string {
	if g < G1 || g > G4 {
		return "no generation"
	}
	return "G" + string(rune('0'+g))
}

// The paths at which executors take runs.
const (
	pathRun     = "/run"
	pathTrigger = "/trigger"
)

// runPath is the one of the two paths that the generation knows.
func (g Generation) runPath() string {
	if g == G4 {
		return pathTrigger
	}
	return pathRun
}

// api is the path prefix of the admin's endpoints.
func (g Generation) api() string {
	if g == G4 {
		return "/api/"
	}
	return "/xxl-job-admin/api/"
}

// encode encodes a message, up to G2 with "<", ">" and "&" escaped.
func (g Generation) encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(g <= G2)
	if err := enc.Encode(v); err != nil {
		panic(err) // messages are made of texts and numbers
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// reply is the answer of an executor. Empty keys are left out.
type reply struct {
	Code    int    `json:"code"`
	Msg     string `json:"msg,omitempty"`
	Content any    `json:"content,omitempty"`
	Data    any    `json:"data,omitempty"`
}

func refusal(msg string) reply { return reply{Code: wire.CodeFail, Msg: msg} }

// success is a positive answer with a payload, which may be nil.
func (g Generation) success(payload any) reply {
	if g <= G2 {
		return reply{Code: wire.CodeSuccess, Content: payload}
	}
	return reply{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, Data: payload}
}

// noted is a positive answer with a note, which up to G2 is the message.
func (g Generation) noted(note string) reply {
	if g <= G2 {
		return reply{Code: wire.CodeSuccess, Msg: note}
	}
	return g.success(note)
}

// headers are the headers of an executor's requests.
func (g Generation) headers(app, token string) http.Header {
	h := http.Header{
		"Content-Type":   {"application/json;charset=UTF-8"},
		"Accept-Charset": {"UTF-8"},
		"User-Agent":     {"Java/17.0.10"},
	}
	if g <= G2 {
		h.Set("Accept-Charset", "application/json;charset=UTF-8")
		h.Set("User-Agent", "Java/1.8.0_402")
	}
	if token != "" || g >= G3 { // which send an empty one too
		h.Set(wire.HeaderToken, token)
	}
	if g == G4 {
		h.Set(wire.HeaderApp, app)
	}
	return h
}

// handled is a result in a callback from G2 on. Up to G3 the date's key is misspelled.
type handled struct {
	LogID       int64  `json:"logId"`
	LogDateTim  int64  `json:"logDateTim,omitempty"`
	LogDateTime int64  `json:"logDateTime,omitempty"`
	HandleCode  int    `json:"handleCode"`
	HandleMsg   string `json:"handleMsg,omitempty"`
}

// executed is a result in a callback of G1.
type executed struct {
	LogID         int64 `json:"logId"`
	LogDateTim    int64 `json:"logDateTim"`
	ExecuteResult reply `json:"executeResult"`
}

// callback encodes the body that reports one result.
func (g Generation) callback(r ExecutorRun, code int, msg string) []byte {
	switch g {
	case G1:
		return g.encode([]executed{{LogID: r.LogID, LogDateTim: r.LogDateTime, ExecuteResult: reply{Code: code, Msg: msg}}})
	case G4:
		return g.encode(map[string][]handled{"callbackList": {{LogID: r.LogID, LogDateTime: r.LogDateTime, HandleCode: code, HandleMsg: msg}}})
	}
	return g.encode([]handled{{LogID: r.LogID, LogDateTim: r.LogDateTime, HandleCode: code, HandleMsg: msg}})
}

// identify checks the token and app of a caller, and returns the text of a refusal or "".
func (g Generation) identify(h http.Header, app, token string) (refused string) {
	gotApp, got := h.Get(wire.HeaderApp), h.Get(wire.HeaderToken)
	switch {
	case g < G4 && token != "" && got != token:
		return wire.MsgTokenWrong
	case g < G4:
		return ""
	case strings.TrimSpace(gotApp) == "" || strings.TrimSpace(got) == "":
		return wire.MsgIdentityEmpty
	case gotApp != app || got != token:
		return wire.MsgIdentityInvalid
	}
	return ""
}
