package wire

import "encoding/json"

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
	// Progress is how far the run is, from an executor of ours where it has not ended.
	// The key is absent where nothing was said.
	Progress Progress `json:"progress,omitzero"`
	// Tail says that these are the last lines, as LogRequest.Tail has asked for.
	Tail bool `json:"tail,omitempty"`
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

// Unauthorized is Return.Unauthorized.
func (r LogReturn) Unauthorized() bool { return unauthorized(r.Code, r.Msg) }

// logReturn is LogReturn as it travels.
type logReturn struct {
	Code    int        `json:"code"`
	Msg     string     `json:"msg,omitempty"`
	Content *LogResult `json:"content,omitempty"`
	Data    *LogResult `json:"data,omitempty"`
}

// MarshalJSON writes the result under both keys, and under none in a refusal.
func (r LogReturn) MarshalJSON() ([]byte, error) { return json.Marshal(r.travelling()) }

// travelling returns r as it travels.
func (r LogReturn) travelling() logReturn {
	out := logReturn{Code: r.Code, Msg: r.Msg}
	if r.OK() {
		out.Content, out.Data = &r.Result, &r.Result
	}
	return out
}

// Encode appends the answer as MarshalJSON writes it, without the escaping of
// HTML.
func (r LogReturn) Encode(dst []byte) []byte { return encode(dst, r.travelling()) }

// Decode reads the answer of an executor of any generation, with the result from
// "data", or else from "content". A result is an object, null or absent. See
// Return.Decode for what is an error.
func (r *LogReturn) Decode(src []byte) error {
	_, err := r.decode(src)
	return err
}

// decode also returns under which keys the result was.
func (r *LogReturn) decode(src []byte) (keys logKeys, err error) {
	v, err := parse(src)
	if err != nil {
		return keys, answerError(err)
	}
	*r = LogReturn{}
	err = v.object(func(key string, val value) (err error) {
		switch key {
		case "code":
			r.Code, err = val.int32()
		case "msg":
			r.Msg, err = val.text()
		case "content":
			if keys.content = !val.isNull(); keys.content && !keys.data {
				r.Result, err = decodeLogResult(val)
			}
		case "data":
			if keys.data = !val.isNull(); keys.data {
				r.Result, err = decodeLogResult(val)
			}
		}
		return err
	})
	return keys, err
}

// logKeys are the keys of an answer that are there and not null.
type logKeys struct{ content, data bool }

// UnmarshalJSON is Decode.
func (r *LogReturn) UnmarshalJSON(b []byte) error { return r.Decode(b) }

func decodeLogResult(v value) (res LogResult, err error) {
	err = v.object(func(key string, val value) (err error) {
		switch key {
		case "fromLineNum":
			res.FromLineNum, err = val.int32()
		case "toLineNum":
			res.ToLineNum, err = val.int32()
		case "logContent":
			res.LogContent, err = val.text()
		case "isEnd":
			res.IsEnd, err = val.flag()
		case "progress":
			res.Progress = val.progress()
		case "tail":
			res.Tail, err = val.flag()
		}
		return err
	})
	return res, err
}
