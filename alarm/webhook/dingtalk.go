package webhook

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// maxDingTalk is how long a message to DingTalk may be, in bytes of JSON.
const maxDingTalk = 20000

// DingTalk makes an alarmer for a custom robot of a DingTalk group. URL is that of the robot,
// with its access token. Secret is what the robot signs with, if that is one of its settings:
// the secret that begins with SEC. Messages are of type text, call nobody by name, and are
// cut at 20,000 bytes. A robot takes 20 messages a minute; more are errors.
func DingTalk(cfg Config) (*Hook, error) {
	return newHook(cfg, service{name: "DingTalk", request: dingTalkRequest, judge: judgeErrcode})
}

func dingTalkRequest(h *Hook, _ alarm.Message, text alarm.Text, now time.Time) (request, error) {
	type content struct {
		Content string `json:"content"`
	}
	type at struct {
		All bool `json:"isAtAll"`
	}
	type message struct {
		Type string  `json:"msgtype"`
		Text content `json:"text"`
		At   at      `json:"at"`
	}
	body, err := fit(maxDingTalk, defused(text.Plain), func(s string) any {
		return message{Type: "text", Text: content{s}}
	})
	r := request{body: body}
	if h.secret != "" {
		t := strconv.FormatInt(now.UnixMilli(), 10)
		sign := base64.StdEncoding.EncodeToString(sum(h.secret, t+"\n"+h.secret))
		r.query = url.Values{"timestamp": {t}, "sign": {sign}}
	}
	return r, err
}
