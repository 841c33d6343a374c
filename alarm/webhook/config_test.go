package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm/webhook"
)

func TestBadConfigs(t *testing.T) {
	for name, cfg := range map[string]webhook.Config{
		"empty":        {},
		"relative":     {URL: "/token-in-path"},
		"no scheme":    {URL: "hook.example.org/token-in-path"},
		"other scheme": {URL: "ftp://hook.example.org/token-in-path"},
		"http":         {URL: "http://hook.example.org/token-in-path"},
		"no host":      {URL: "https:///token-in-path"},
		"only a port":  {URL: "https://:443/token-in-path"},
		"user":         {URL: "https://ann:token-in-path@hook.example.org/"},
		"fragment":     {URL: "https://hook.example.org/#token-in-path"},
		"control":      {URL: "https://hook.example.org/token-in-path\r\nX: y"},
		"bad escape":   {URL: "https://hook.example.org/token-in-path%zz"},
		"long":         {URL: "https://hook.example.org/token-in-path" + strings.Repeat("x", 5000)},
		"negative":     {URL: "https://hook.example.org/token-in-path", Timeout: -1},
		"too patient":  {URL: "https://hook.example.org/token-in-path", Timeout: time.Hour},
	} {
		_, err := webhook.New(cfg)
		saysNoSecrets(t, err, "token-in-path")
		if err != nil && !strings.HasPrefix(err.Error(), "webhook: Config.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, make := range map[string]maker{"WeCom": webhook.WeCom, "Slack": webhook.Slack} {
		_, err := make(webhook.Config{URL: "https://hook.example.org/token-in-path", Secret: "s3cret"})
		saysNoSecrets(t, err, "token-in-path", "s3cret")
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
	}
	if _, err := webhook.PagerDuty(webhook.Config{}); err == nil {
		t.Error("PagerDuty does without a routing key")
	}
}

func TestHookPrintsNoSecrets(t *testing.T) {
	for _, p := range presets() {
		h, err := p.make(webhook.Config{URL: "https://hook.example.org/token-in-path?key=t0ken", Secret: p.secret})
		if err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			got := fmt.Sprintf(verb, h)
			if !strings.HasSuffix(got, " at hook.example.org") {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
	h, err := webhook.PagerDuty(webhook.Config{Secret: "key"})
	if err != nil || h.String() != "PagerDuty at events.pagerduty.com" {
		t.Errorf("%v, %v", h, err)
	}
}
