package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob/alarm"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoldenBodies(t *testing.T) {
	for _, p := range presets() {
		for name, m := range map[string]alarm.Message{"alarm": one(), "storm": storm(), "recovered": recovered()} {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // at 2000-01-01, 00:00:00 UTC
					service := newMemory(t, p.answer)
					if err := service.hook(t, p).Alarm(context.Background(), m); err != nil {
						t.Fatal(err)
					}
					got := service.last(t)
					if !json.Valid(got.body) || got.contentType != "application/json; charset=utf-8" {
						t.Errorf("no JSON: %s, %s", got.contentType, got.body)
					}
					file := filepath.Join("testdata", p.name+"."+name+".json")
					if *update {
						if err := os.WriteFile(file, got.body, 0o666); err != nil {
							t.Fatal(err)
						}
					}
					want, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got.body, want) {
						t.Errorf("%s is not what is posted now (-update):\n%s", file, got.body)
					}
				})
			})
		}
	}
}

// The signatures of what is posted at 2000-01-01, 00:00:00 UTC, which is 946684800, each as
// openssl computes it:
//
//	(printf '946684800.'; cat testdata/webhook.recovered.json) |
//		openssl dgst -sha256 -hmac s3cret-of-hook
//	printf '946684800000\nSEC0123456789' |
//		openssl dgst -sha256 -hmac SEC0123456789 -binary | base64
//	printf '' | openssl dgst -sha256 -mac HMAC -binary \
//		-macopt hexkey:$(printf '946684800\nfeishu-secret' | od -An -tx1 | tr -d ' \n') | base64
const (
	ownSign      = "ea13cc42eb358ee3645ccac00df0a9315b121975ba540c6b9ef61b03de9e85a1"
	dingTalkSign = "sk9BePNNQ73hOnAbceV4UNz1EXdEC2z7zU7YIB4a+O4="
	feishuSign   = "y+6r9X3lTYSNn7WmSJEk0lbGCsZi57m4dwYkUA/xMV4="
)

func TestSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, p := range presets() {
			service := newMemory(t, p.answer)
			if err := service.hook(t, p).Alarm(context.Background(), recovered()); err != nil {
				t.Fatal(err)
			}
			got := service.last(t)
			path, query, _ := strings.Cut(got.path, "?")
			values, err := url.ParseQuery(query)
			if path != "POST /robot/send" || err != nil || values.Get("access_token") != "t0ken-in-url" {
				t.Errorf("%s posts to %s", p.name, got.path)
			}
			switch i {
			case 0:
				if got.sign != "t=946684800,v1="+ownSign {
					t.Errorf("the receiver's own is signed with %q", got.sign)
				}
			case 1:
				if values.Get("timestamp") != "946684800000" || values.Get("sign") != dingTalkSign {
					t.Errorf("DingTalk is asked with %v", values)
				}
			case 3:
				var message struct{ Timestamp, Sign string }
				if err := json.Unmarshal(got.body, &message); err != nil || message.Timestamp != "946684800" || message.Sign != feishuSign {
					t.Errorf("Feishu gets %+v, %v", message, err)
				}
			}
			if i != 0 && got.sign != "" || i != 1 && len(values) != 1 {
				t.Errorf("%s is signed with %q, %v", p.name, got.sign, values)
			}
		}
	})
}

// The constants above are of fixed texts; these are the formulas, written once more.
func TestSignaturesOfFormulas(t *testing.T) {
	of := func(key, text string) []byte {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	body, err := os.ReadFile(filepath.Join("testdata", "webhook.recovered.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(of("s3cret-of-hook", "946684800."+string(body))); got != ownSign {
		t.Errorf("%s", got)
	}
	if got := base64.StdEncoding.EncodeToString(of("SEC0123456789", "946684800000\nSEC0123456789")); got != dingTalkSign {
		t.Errorf("%s", got)
	}
	if got := base64.StdEncoding.EncodeToString(of("946684800\nfeishu-secret", "")); got != feishuSign {
		t.Errorf("%s", got)
	}
}

func TestNoSecretNoSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, p := range presets()[:4] {
			p.secret = ""
			service := newMemory(t, p.answer)
			if err := service.hook(t, p).Alarm(context.Background(), one()); err != nil {
				t.Fatal(err)
			}
			if got := service.last(t); got.sign != "" || strings.Contains(got.path, "sign=") || bytes.Contains(got.body, []byte(`"sign"`)) {
				t.Errorf("%s: %s %s %s", p.name, got.path, got.sign, got.body)
			}
		}
	})
}
