package wire_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// telltale is a token with what encodings change in it.
const telltale = `s3cr3t/+"<token>"&of&'this'&test`

// echoes are ways in which a peer says what it was sent. Each is the body of an answer, or
// all of it where it begins with RAW.
var echoes = map[string]func(token string) string{
	"msg":              func(token string) string { return asJSON(map[string]any{"code": 500, "msg": "you sent " + token}) },
	"msg, twice":       func(token string) string { return asJSON(map[string]any{"code": 500, "msg": token + token}) },
	"content and data": func(token string) string { return asJSON(map[string]any{"code": 200, "content": token, "data": token}) },
	"boot id": func(token string) string {
		return asJSON(map[string]any{"code": 200, "bootId": token, "runState": token})
	},
	"a quoted header": func(token string) string { return asJSON(map[string]any{"code": 500, "msg": fmt.Sprintf("%q", token)}) },
	"JSON in a text": func(token string) string {
		return asJSON(map[string]any{"code": 500, "msg": asJSON(map[string]any{"XXL-JOB-ACCESS-TOKEN": token})})
	},
	"a URL": func(token string) string {
		return asJSON(map[string]any{"code": 500, "msg": "?t=" + url.QueryEscape(token)})
	},
	"base64": func(token string) string {
		return asJSON(map[string]any{"code": 500, "msg": base64.StdEncoding.EncodeToString([]byte(token))})
	},
	"escaped letters": func(token string) string {
		return fmt.Sprintf(`{"code":500,"msg":"\u0073%s"}`, strings.ReplaceAll(token[1:], `"`, `\"`))
	},
	"a log": func(token string) string {
		lines := map[string]any{"fromLineNum": 1, "toLineNum": 1, "logContent": "header " + token + "\n"}
		return asJSON(map[string]any{"code": 200, "msg": token, "data": lines})
	},
	"a list": func(token string) string {
		return asJSON([]any{map[string]any{"logId": 1, "handleCode": 500, "handleMsg": token}})
	},
	"a page":              func(token string) string { return "<html>" + token + "</html>" },
	"a page, cut":         func(token string) string { return "<html>" + strings.Repeat("x", 480) + token + "</html>" },
	"a page that goes on": func(token string) string { return strings.Repeat("<html>"+token, 100_000) },
	"an escaped page": func(token string) string {
		return "<p>" + html.EscapeString(token)
	},
	"a key": func(token string) string { return asJSON(map[string]any{token: 1, "code": "x"}) },
	"a key, wrong": func(token string) string {
		return `{"code":200,"msg":{"` + strings.ReplaceAll(token, `"`, `\"`) + `":1}}`
	},
	"a number that is":  func(token string) string { return `{"code":` + asJSON(token) + `}` },
	"no HTTP":           func(token string) string { return "RAW" + token + "\r\n\r\n" },
	"a broken status":   func(token string) string { return "RAWHTTP/1.1 " + token + "\r\n\r\n" },
	"a broken header":   func(token string) string { return "RAWHTTP/1.1 200 OK\r\n" + token + "\r\n\r\n" },
	"a broken length":   func(token string) string { return "RAWHTTP/1.1 200 OK\r\nContent-Length: " + token + "\r\n\r\n" },
	"a broken encoding": func(token string) string { return "RAWHTTP/1.1 200 OK\r\nTransfer-Encoding: " + token + "\r\n\r\n" },
	"a redirect": func(token string) string {
		return "RAWHTTP/1.1 302 Found\r\nLocation: http://else/" + token + "\r\n\r\n"
	},
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// calls are the methods of both clients.
func calls(t *testing.T, addr string, cfg wire.ClientConfig) map[string]func(context.Context) (any, error) {
	t.Helper()
	x, err := wire.NewExecutorClient(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.NewAdminClient(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	results := []wire.CallbackRequest{{LogID: 1, HandleCode: 200}}
	return map[string]func(context.Context) (any, error){
		"beat":           func(ctx context.Context) (any, error) { return x.Beat(ctx) },
		"idleBeat":       func(ctx context.Context) (any, error) { return x.IdleBeat(ctx, wire.IdleBeatRequest{JobID: 1}) },
		"run":            func(ctx context.Context) (any, error) { return x.Run(ctx, wire.TriggerRequest{JobID: 1, LogID: 1}) },
		"kill":           func(ctx context.Context) (any, error) { return x.Kill(ctx, wire.KillRequest{JobID: 1}) },
		"log":            func(ctx context.Context) (any, error) { return x.Log(ctx, wire.LogRequest{LogID: 1}) },
		"registry":       func(ctx context.Context) (any, error) { return a.Registry(ctx, wire.RegistryRequest{}) },
		"registryRemove": func(ctx context.Context) (any, error) { return a.RegistryRemove(ctx, wire.RegistryRequest{}) },
		"callback":       func(ctx context.Context) (any, error) { return a.Callback(ctx, results) },
		"addJob":         func(ctx context.Context) (any, error) { return a.AddJob(ctx, wire.AddJobRequest{}) },
		"triggerJob":     func(ctx context.Context) (any, error) { return a.TriggerJob(ctx, wire.TriggerJobRequest{}) },
	}
}

// TestEchoedTokens: whatever a peer makes of the token that it was sent, no text and no
// error of a client has it.
func TestEchoedTokens(t *testing.T) {
	leaks, asked := 0, 0
	for name, echo := range echoes {
		// With a second token that the peer has heard of by another client.
		for _, said := range []string{telltale, "the-other-" + telltale} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				text := echo(said)
				raw, isRaw := strings.CutPrefix(text, "RAW")
				if !isRaw {
					_, _ = io.WriteString(w, text)
					return
				}
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_, _ = io.WriteString(conn, raw)
					_ = conn.(*net.TCPConn).CloseWrite()
					_ = conn.Close()
				}
			}))
			for method, call := range calls(t, srv.URL, wire.ClientConfig{App: "app", Token: telltale, Secrets: []string{"the-other-" + telltale}}) {
				got, err := call(t.Context())
				asked++
				if text := spelledOut(got, err); leaksOf(text, said) != "" {
					leaks++
					t.Errorf("%s, %s: %q is in %.300q", name, method, leaksOf(text, said), text)
				}
			}
			srv.Close()
		}
	}
	t.Logf("%d of %d answers have the token", leaks, asked)
}

// spelledOut is all that an answer and an error say.
func spelledOut(got any, err error) string {
	text := fmt.Sprintf("%+v", got)
	if err != nil {
		text += " " + err.Error()
	}
	var call *wire.CallError
	if errors.As(err, &call) {
		text += fmt.Sprintf(" %s %v", call.Text, call.Err)
	}
	return text
}

// leaksOf returns what of a token is in a text: half of it, in the form that it was in.
func leaksOf(text, token string) string {
	quoted := fmt.Sprintf("%q", token)
	escaped := asJSON(token)
	for _, form := range []string{token, quoted[1 : len(quoted)-1], escaped[1 : len(escaped)-1], url.QueryEscape(token), base64.RawStdEncoding.EncodeToString([]byte(token))} {
		if half := form[:len(form)/2+1]; strings.Contains(text, half) {
			return half
		}
	}
	return ""
}

// TestShortTokensStay: a token that is a part of words is not looked for in them.
func TestShortTokensStay(t *testing.T) {
	rec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"code":500,"msg":"a message of some words"}`)
	}))
	defer rec.Close()
	for _, token := range []string{"", "a", "some"} {
		x, err := wire.NewExecutorClient(rec.URL, wire.ClientConfig{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if ret, err := x.Beat(t.Context()); err != nil || ret.Msg != "a message of some words" {
			t.Errorf("%q: %+v, %v", token, ret, err)
		}
	}
}
