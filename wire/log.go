package wire

import "encoding/json"

// LogRequest asks for the lines of one run.
type LogRequest struct {
	// LogDateTim is TriggerRequest.LogDateTime under the protocol's other
	// spelling, in ms. Java admins send it in whole seconds.
	LogDateTim int64 `json:"logDateTim"`
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// FromLineNum is the first line wanted, from 1, 32 bits wide.
	FromLineNum int `json:"fromLineNum"`
}

// LogResult holds lines of a run's log. There is nothing new when FromLineNum
// is greater than ToLineNum.
type LogResult struct {
	// FromLineNum is the number of the first line, from 1.
	FromLineNum int `json:"fromLineNum"`
	// ToLineNum is the number of the last line.
	ToLineNum int `json:"toLineNum"`
	// LogContent holds the lines, each ended by a line feed.
	LogContent string `json:"logContent"`
	// IsEnd says that no line will ever follow. Executors say so only when
	// there is no log; the end of a run is known to the admin.
	IsEnd bool `json:"isEnd"`
}

// LogReturn is the answer to a log request. Peers up to 3.2 carry the result
// under "content", later ones under "data": it is written under both keys
// and read from either.
type LogReturn struct {
	// Code and Msg are those of a Return.
	Code int
	Msg  string
	// Result is zero when the request was refused.
	Result LogResult
}

// OK reports whether the request was answered.
func (r LogReturn) OK() bool { return r.Code == CodeSuccess }

// logReturn is LogReturn as it travels.
type logReturn struct {
	Code    int        `json:"code"`
	Msg     string     `json:"msg,omitempty"`
	Content *LogResult `json:"content,omitempty"`
	Data    *LogResult `json:"data,omitempty"`
}

// MarshalJSON writes the result under both keys, and under none in a refusal.
func (r LogReturn) MarshalJSON() ([]byte, error) {
	out := logReturn{Code: r.Code, Msg: r.Msg}
	if r.OK() {
		out.Content, out.Data = &r.Result, &r.Result
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the result from "data", or else from "content".
func (r *LogReturn) UnmarshalJSON(b []byte) error {
	var in logReturn
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*r = LogReturn{Code: in.Code, Msg: in.Msg}
	switch {
	case in.Data != nil:
		r.Result = *in.Data
	case in.Content != nil:
		r.Result = *in.Content
	}
	return nil
}
