package trace_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/watchmill/watchmill/sim/trace"
)

const history = `{"t":1460920094,"op":"put","key":"README.md","version":"v1"}
{"t":1460920175,"op":"put","key":"main.go","version":"v1"}
{"t":1460922806,"op":"put","key":"main.go","version":"v2"}
{"t":1460923625,"op":"delete","key":"README.md"}
`

func ExampleRead() {
	for change, err := range trace.Read("history.ndjson", strings.NewReader(history)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(change.Time.Format("15:04:05"), change.Op, change.Key, change.Version)
	}
	// Output:
	// 19:08:14 put README.md v1
	// 19:09:35 put main.go v1
	// 19:53:26 put main.go v2
	// 20:07:05 delete README.md
}

func ExampleReadFile() {
	for _, err := range trace.ReadFile("missing.ndjson") {
		var where *trace.Error
		fmt.Println(errors.Is(err, os.ErrNotExist), errors.As(err, &where))
		fmt.Println(err)
	}
	// Output:
	// true true
	// missing.ndjson: no such file or directory
}

// A loop that continues after an error gets the lines after the bad one.
func ExampleError() {
	text := strings.Replace(history, `"op":"put","key":"main.go","version":"v1"`, `"op":"patch","key":"main.go"`, 1)
	good := 0
	for _, err := range trace.Read("history.ndjson", strings.NewReader(text)) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		good++
	}
	fmt.Println(good, "good lines")
	// Output:
	// history.ndjson:2: unknown op "patch": it is one of put, delete
	// 3 good lines
}

func ExampleState() {
	state := trace.State{}
	for change, err := range trace.Read("history.ndjson", strings.NewReader(history)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		state.Apply(change)
	}
	if err := state.WriteTSV(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: main.go	v2
}

func ExampleParseOp() {
	op, err := trace.ParseOp("delete")
	fmt.Println(op, err)
	_, err = trace.ParseOp("DELETE")
	fmt.Println(errors.Is(err, trace.ErrUnknownOp))
	// Output:
	// delete <nil>
	// true
}
