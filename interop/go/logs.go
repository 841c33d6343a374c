package main

import (
	"strings"
	"sync"

	xxl "github.com/xxl-job/xxl-job-executor-go"
)

// runLogs keeps the lines of runs: the client has nothing but a hook for them.
type runLogs struct {
	mu    sync.Mutex
	lines map[int64][]string // guarded by mu
}

func (l *runLogs) add(run int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[run] = append(l.lines[run], strings.Split(text, "\n")...)
}

// read answers as Java executors do.
func (l *runLogs) read(req *xxl.LogReq) *xxl.LogRes {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines[req.LogID]
	content := xxl.LogResContent{FromLineNum: req.FromLineNum, ToLineNum: len(lines)}
	for i := max(req.FromLineNum, 1); i <= len(lines); i++ {
		content.LogContent += lines[i-1] + "\n"
	}
	return &xxl.LogRes{Code: xxl.SuccessCode, Content: content}
}
