package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/webhook"
)

// A receiver of one's own, which checks the signature.
func ExampleNew() {
	const secret = "known to both"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil || !signed(secret, r.Header.Get("X-Xxljob-Signature"), body, time.Now()) {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		var got webhook.Body
		if err := json.Unmarshal(body, &got); err != nil {
			http.Error(w, "not understood", http.StatusBadRequest)
			return
		}
		fmt.Println(got.Cause, got.App, got.JobKey, got.Subject)
	}))
	defer receiver.Close()

	hook, err := webhook.New(webhook.Config{URL: receiver.URL, Secret: secret, AllowHTTP: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	rule := alarm.Rule{Name: "hook", To: hook}
	err = rule.To.Alarm(context.Background(), alarm.Message{
		ID: "4711/hook", Cause: alarm.Lost, App: "billing", JobKey: "nightly", JobName: "nightly report", Count: 1,
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: lost billing nightly [billing] nightly report: 1 run was lost
}

// signed checks a signature that is at most five minutes old.
func signed(secret, header string, body []byte, now time.Time) bool {
	t, v1, ok := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	seconds, err := strconv.ParseInt(t, 10, 64)
	if !ok || err != nil || math.Abs(now.Sub(time.Unix(seconds, 0)).Minutes()) > 5 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	got, err := hex.DecodeString(v1)
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

func ExampleDingTalk() {
	hook, err := webhook.DingTalk(webhook.Config{
		URL:    "https://oapi.dingtalk.com/robot/send?access_token=…",
		Secret: "SEC…",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hook)
	// Output: DingTalk at oapi.dingtalk.com
}

func ExamplePagerDuty() {
	hook, err := webhook.PagerDuty(webhook.Config{Secret: "the routing key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Without Recovered, alerts would not be resolved.
	rule := alarm.Rule{Name: "pagerduty", To: hook, Causes: []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Stopped, alarm.Recovered}}
	fmt.Println(rule.To)
	// Output: PagerDuty at events.pagerduty.com
}
