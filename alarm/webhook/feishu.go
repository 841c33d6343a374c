package webhook

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// maxFeishu is how long a message to Feishu may be, in bytes of JSON: that of a custom bot,
// which is less than the 30 KB of others.
const maxFeishu = 20 << 10

// Feishu makes an alarmer for a custom bot of a Feishu or Lark group. URL is that of the bot,
// with its token. Secret is what the bot checks signatures with, if that is one of its
// settings. Messages are of type post, with the subject as title; they call nobody by name,
// and are cut at 20 KiB.
func Feishu(cfg Config) (*Hook, error) {
	return newHook(cfg, service{name: "Feishu", request: feishuRequest, judge: judgeFeishu})
}

// The parts of a message of type post. Nothing in a text is a mark: a call would be a part
// with a tag of its own.
type (
	feishuPart struct {
		Tag  string `json:"tag"`
		Text string `json:"text"`
	}
	feishuPost struct {
		Title   string         `json:"title"`
		Content [][]feishuPart `json:"content"`
	}
	feishuMessage struct {
		Timestamp string `json:"timestamp,omitempty"`
		Sign      string `json:"sign,omitempty"`
		Type      string `json:"msg_type"`
		Content   struct {
			Post struct {
				Text feishuPost `json:"zh_cn"` // the one that there must be, in whatever language
			} `json:"post"`
		} `json:"content"`
	}
)

func feishuRequest(h *Hook, _ alarm.Message, text alarm.Text, now time.Time) (request, error) {
	message := feishuMessage{Type: "post"}
	if h.secret != "" {
		message.Timestamp = strconv.FormatInt(now.Unix(), 10)
		message.Sign = base64.StdEncoding.EncodeToString(sum(message.Timestamp+"\n"+h.secret, ""))
	}
	title := defused(text.Subject)
	body, err := fit(maxFeishu, defused(text.Plain), func(s string) any {
		message.Content.Post.Text = feishuPost{Title: title, Content: [][]feishuPart{{{Tag: "text", Text: s}}}}
		return message
	})
	return request{body: body}, err
}
