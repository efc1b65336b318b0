package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/snapshot"
	"github.com/watchmill/watchmill/usercode"
)

const (
	head = `{"snapshot":1,"revision":9}` + "\n"
	one  = `{"key":"a","revision":5,"created":3,"written":"2026-01-01T00:00:00Z","value":{"Name":"a","N":1}}` + "\n"
	end  = `{"end":1}` + "\n"
	// summed is the end with a checksum of the two lines above.
	summed = `{"end":1,"sum":2977781267}` + "\n"
)

// What is not a whole snapshot is refused, with the line and the field.
func TestRead_SaysWhatIsWrongAndWhere(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		line    int
		field   string
		problem string
	}{
		"empty":               {"", 1, "", "is missing: the snapshot was cut off"},
		"no snapshot":         {"hello\n", 1, "", "is not a line of a snapshot"},
		"later version":       {`{"snapshot":2,"revision":9}` + "\n", 1, "snapshot", "is 2; this program reads version 1"},
		"later format":        {`{"snapshot":2,"revision":9,"codec":"x"}` + "\n", 1, "snapshot", "is 2; this program reads version 1"},
		"unknown format":      {`{"snapshot":1,"revision":9,"codec":"x"}` + "\n", 1, "", "is not a line of a snapshot"},
		"cut off":             {head + one, 3, "", "is missing: the snapshot was cut off"},
		"cut off in a line":   {head + one[:20], 2, "", "is not a line of a snapshot"},
		"unknown field":       {head + `{"key":"a","colour":"red"}` + "\n", 2, "", "is not a line of a snapshot"},
		"two objects a line":  {head + strings.TrimSpace(one) + one, 2, "", "has something after its JSON object"},
		"no key":              {head + `{"revision":5}` + "\n", 2, "key", "is not valid"},
		"key twice":           {head + one + one + end, 3, "key", "\"a\" does not come after that of the line before"},
		"keys not in order":   {head + strings.Replace(one, `"a"`, `"b"`, 1) + one + end, 3, "key", "\"a\" does not come after that of the line before"},
		"no revision":         {head + `{"key":"a","created":1,"value":{}}` + "\n", 2, "revision", "is 0; it must be between 1 and that of the snapshot, 9"},
		"later than snapshot": {head + `{"key":"a","revision":10,"created":1,"value":{}}` + "\n", 2, "revision", "is 10; it must be between 1 and that of the snapshot, 9"},
		"created later":       {head + `{"key":"a","revision":5,"created":6,"value":{}}` + "\n", 2, "created", "is 6; it must be between 1 and the object's revision, 5"},
		"not created":         {head + `{"key":"a","revision":5,"value":{}}` + "\n", 2, "created", "is 0; it must be between 1 and the object's revision, 5"},
		"no value":            {head + `{"key":"a","revision":5,"created":5}` + "\n", 2, "value", "cannot be decoded"},
		"other value":         {head + `{"key":"a","revision":5,"created":5,"value":[1]}` + "\n", 2, "value", "cannot be decoded"},
		"other codec":         {head + `{"key":"a","revision":5,"created":5,"tag":3,"bytes":"AAAA"}` + "\n", 2, "value", "cannot be decoded"},
		"both":                {head + `{"key":"a","revision":5,"created":5,"value":{},"bytes":"AAAA"}` + "\n", 2, "value", "cannot be in a line with tag or bytes"},
		"value and tag":       {head + `{"key":"a","revision":5,"created":5,"value":{},"tag":1}` + "\n", 2, "value", "cannot be in a line with tag or bytes"},
		"wrong number":        {head + one + `{"end":2}` + "\n", 3, "end", "is 2, but there are 1 objects"},
		"other lines":         {head + strings.Replace(one, `"N":1`, `"N":2`, 1) + summed, 3, "sum", "is 2977781267, but that of the lines before is 3546275626: something was changed or damaged"},
		"sum of an object":    {head + `{"key":"a","revision":5,"created":5,"value":{},"sum":1}` + "\n", 2, "sum", "cannot be in the line of an object"},
		"object in the end":   {head + one + `{"key":"b","revision":5,"created":5,"value":{},"end":1}` + "\n", 3, "end", "cannot be in the line of an object"},
		"more after the end":  {head + one + end + one, 4, "", "comes after the end"},
		"long line":           {head + strings.Repeat(" ", 1<<12+1) + "\n", 2, "", "is longer than 4096 bytes; see Options.MaxLine"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Read(strings.NewReader(test.text), config().Schema(), snapshot.Options{MaxLine: 1 << 12})
			require.ErrorIs(t, err, snapshot.ErrInvalid)
			require.NotErrorIs(t, err, store.ErrExpired)
			var wrong *snapshot.ReadError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, test.line, wrong.Line)
			require.Equal(t, test.field, wrong.Field)
			require.Equal(t, test.problem, wrong.Problem)
			require.ErrorContains(t, err, strings.TrimSpace(fmt.Sprintf("invalid snapshot: line %d: %s", test.line, test.field)))
			if slices.Contains([]string{"is not a line of a snapshot", "is not valid", "cannot be decoded"}, test.problem) {
				require.ErrorIs(t, err, wrong.Err)
				require.ErrorContains(t, err, wrong.Problem+": "+wrong.Err.Error())
			}
		})
	}
}

// A bit that has changed is noticed, unless it makes no difference.
func TestRead_NoticesEachWrongBit(t *testing.T) {
	schema, text := config().Schema(), head+one+summed
	whole, err := snapshot.Read(strings.NewReader(text), schema, snapshot.Options{})
	require.NoError(t, err)
	for at := range text {
		for bit := range 8 {
			damaged := []byte(text)
			damaged[at] ^= 1 << bit
			state, err := snapshot.Read(bytes.NewReader(damaged), schema, snapshot.Options{})
			if err == nil {
				require.Equal(t, whole, state)
				require.Equal(t, strings.ToLower(text), strings.ToLower(string(damaged)), "JSON's names may be capitals")
				continue
			}
			require.ErrorIs(t, err, snapshot.ErrInvalid)
		}
	}
}

// Lines are as long as Options.MaxLine allows, by default much longer than a buffer.
func TestRead_TakesLinesUpToMaxLine(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	long := `{"key":"a","revision":5,"created":3,"value":{"Name":"` + name + `","N":1}}` + "\n"
	for _, maxLine := range []int{0, len(long) - 1, math.MaxInt} {
		state, err := snapshot.Read(strings.NewReader(head+long+end), config().Schema(), snapshot.Options{MaxLine: maxLine})
		require.NoError(t, err)
		require.Equal(t, name, store.As[engine.Object[pod]](state.Objects[0]).Value.Name)
	}
	_, err := snapshot.Read(strings.NewReader(head+long+end), config().Schema(), snapshot.Options{MaxLine: len(long) - 2})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	require.EqualError(t, err, fmt.Sprintf("invalid snapshot: line 2: is longer than %d bytes; see Options.MaxLine", len(long)-2))
}

// What cannot be read is not a snapshot that is wrong, wherever the reader fails.
func TestRead_FailsAsItsReaderDoes(t *testing.T) {
	errPipe := errors.New("broken pipe")
	for line, text := range []string{"", head, head + one, head + one + end} {
		_, err := snapshot.Read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(errPipe)), config().Schema(), snapshot.Options{})
		require.ErrorIs(t, err, errPipe)
		require.NotErrorIs(t, err, snapshot.ErrInvalid)
		require.EqualError(t, err, fmt.Sprintf("read snapshot: line %d: broken pipe", line+1))
	}
}

func TestRead_ContainsAPanicOfTheCodec(t *testing.T) {
	_, err := snapshot.Read(strings.NewReader(head+one+end), config().Schema(), snapshot.Options{Codec: panicking{}})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "Codec.Decode", panicked.Func)
	require.ErrorContains(t, err, "line 2: value cannot be decoded")
}

func FuzzRead(f *testing.F) {
	f.Add(head + one + end)
	f.Add(head + one + summed)
	f.Add(head + end)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		state, err := snapshot.Read(strings.NewReader(text), config().Schema(), snapshot.Options{MaxLine: 1 << 16})
		if err != nil {
			require.ErrorIs(t, err, snapshot.ErrInvalid)
			return
		}
		_, err = memory.New(config().Schema(), memory.Options{FirstRevision: max(state.Revision, 1), Objects: state.Objects})
		if err != nil {
			require.ErrorIs(t, err, usercode.ErrConfig)
		}
	})
}
