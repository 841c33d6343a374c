package wire_test

import (
	"encoding/json"
	"fmt"

	"github.com/xxljob/xxljob/wire"
)

func ExampleReturn() {
	for _, body := range []string{`{"code":200,"msg":"Success"}`, `{"code":500,"msg":"job handler [nightly] not found."}`, `{}`} {
		var r wire.Return
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			fmt.Println("unknown:", err)
			continue
		}
		fmt.Println(r.OK(), r.Msg)
	}
	// Output:
	// true Success
	// false job handler [nightly] not found.
	// false
}

func ExampleLogReturn() {
	answer := wire.LogReturn{Code: wire.CodeSuccess, Result: wire.LogResult{FromLineNum: 1, ToLineNum: 1, LogContent: "hello\n"}}
	b, _ := json.Marshal(answer)
	fmt.Println(string(b))
	// Output: {"code":200,"content":{"fromLineNum":1,"toLineNum":1,"logContent":"hello\n","isEnd":false},"data":{"fromLineNum":1,"toLineNum":1,"logContent":"hello\n","isEnd":false}}
}
