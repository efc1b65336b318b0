package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
)

const shipped = "../../testdata/git-history-small"

// collect reads all lines and continues after bad ones.
func collect(changes iter.Seq2[trace.Change, error]) (good []trace.Change, bad []*trace.Error) {
	for change, err := range changes {
		var where *trace.Error
		if errors.As(err, &where) {
			bad = append(bad, where)
			continue
		}
		good = append(good, change)
	}
	return good, bad
}

func read(text string) ([]trace.Change, []*trace.Error) {
	return collect(trace.Read("t", strings.NewReader(text)))
}

func zipped(t testing.TB, text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestRead_ShippedTraceLeadsToTheShippedState(t *testing.T) {
	state, lines := trace.State{}, 0
	for change, err := range trace.ReadFile(shipped + ".ndjson.gz") {
		require.NoError(t, err)
		state.Apply(change)
		lines++
	}
	require.Equal(t, 9042, lines)
	want, err := os.ReadFile(shipped + ".final.tsv")
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, state.WriteTSV(&got))
	require.Equal(t, string(want), got.String())
}

func TestRead_TellsCompressionByContentNotByName(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"plain.ndjson.gz": []byte(history),
		"zipped.ndjson":   zipped(t, []byte(history)),
		// gzip files can be concatenated.
		"two": append(zipped(t, []byte(history[:100])), zipped(t, []byte(history[100:]))...),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		good, bad := collect(trace.ReadFile(path))
		require.Empty(t, bad, name)
		require.Len(t, good, 4, name)
	}
}

// put is a line of n bytes, without its newline.
func put(n int) string {
	const line = `{"t":1,"op":"put","key":"a","version":""}`
	return strings.TrimSuffix(line, `"}`) + strings.Repeat("v", n-len(line)) + `"}`
}

func TestRead_LinesMayBeLongAndTheLastNeedsNoNewline(t *testing.T) {
	good, bad := read(put(trace.MaxLine-1) + "\r\n" + put(trace.MaxLine) + "\n" + put(trace.MaxLine))
	require.Empty(t, bad)
	require.Len(t, good, 3)
	require.Greater(t, len(good[2].Version), trace.MaxLine-100)
}

// A line that is too long is one bad line; the lines around it are read.
func TestRead_LinesHaveALimit(t *testing.T) {
	for name, long := range map[string]string{
		"by one byte":   put(trace.MaxLine + 1),
		"by much":       put(3 * trace.MaxLine),
		"by its blanks": strings.Repeat(" ", 2*trace.MaxLine) + put(100),
	} {
		for _, end := range []string{"\n" + history, "\r\n" + history, "\n", ""} {
			good, bad := read(history + long + end)
			require.Len(t, good, 4+strings.Count(end, "{"), name)
			require.Len(t, bad, 1, name)
			require.ErrorIs(t, bad[0], trace.ErrLineTooLong, name)
			require.EqualError(t, bad[0], "t:5: line is too long: the most is 1048576 bytes")
			require.Equal(t, 4, bad[0].Good)
		}
	}
}

// bomb returns a gzip file of less than 1 MiB that contains 64 MiB: a prefix, and a
// piece repeated.
func bomb(t *testing.T, prefix, piece string) []byte {
	file, part := zipped(t, []byte(prefix)), zipped(t, bytes.Repeat([]byte(piece), 1<<20/len(piece)))
	for range 64 {
		file = append(file, part...)
	}
	require.Less(t, len(file), 1<<20)
	return file
}

// The sum of all allocations is a part of the text.
func TestRead_MemoryIsBoundedWhateverTheTextIs(t *testing.T) {
	for name, c := range map[string]struct{ prefix, piece string }{
		"blanks":            {"", " "},
		"a string":          {`{"t":1,"op":"put","key":"a","version":"`, "v"},
		"a number":          {`{"t":`, "1"},
		"a name":            {`{"`, "x"},
		"an array in depth": {`{"t":`, "["},
		"blanks in between": {`{"t":1,`, "\t"},
	} {
		t.Run(name, func(t *testing.T) {
			file := bomb(t, c.prefix, c.piece)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			good, bad := collect(trace.Read("t", bytes.NewReader(file)))
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12<<20))
			require.Empty(t, good)
			require.Len(t, bad, 1)
			require.ErrorIs(t, bad[0], trace.ErrLineTooLong)
			require.Equal(t, 1, bad[0].Line)
		})
	}
}

// Decoding a line of the highest length is bounded, too.
func TestRead_MemoryIsBoundedByTheLine(t *testing.T) {
	for name, line := range map[string]string{
		"version": put(trace.MaxLine),
		"name":    `{"` + strings.Repeat("x", trace.MaxLine-5) + `":1}`,
		"time":    `{"t":` + strings.Repeat("1", trace.MaxLine-6) + `}`,
		"depth":   `{"t":` + strings.Repeat("[", trace.MaxLine-6),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range trace.Read("t", strings.NewReader(line)) {
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), name)
	}
}

func TestRead_FieldsInAnyOrderAndTimesInAnyForm(t *testing.T) {
	good, bad := read(`{"version":"v","key":"a","op":"put","t":1460920094.5}
 { "t" : -1e3 , "op" : "delete", "key" : "\u00e9\ud83d\ude00" , "version" : "" }
`)
	require.Empty(t, bad)
	require.Equal(t, "2016-04-17T19:08:14.5Z", good[0].Time.Format("2006-01-02T15:04:05.999Z"))
	require.Equal(t, int64(-1000), good[1].Time.Unix())
	require.Equal(t, "é😀", good[1].Key)
}

func TestRead_NamesBadLines(t *testing.T) {
	for name, c := range map[string]struct {
		line    string
		is      error
		mention string
	}{
		"not JSON":            {`put main.go`, trace.ErrNotJSON, "invalid character 'p'"},
		"empty line":          {``, trace.ErrNotJSON, "line is empty"},
		"array":               {`[1]`, trace.ErrNotJSON, "does not start with {"},
		"number":              {`1`, trace.ErrNotJSON, "does not start with {"},
		"cut short":           {`{"t":1,"op":"put","key":"a`, trace.ErrNotJSON, "line ends inside"},
		"cut after a comma":   {`{"t":1,`, trace.ErrNotJSON, "line ends inside"},
		"cut off at the end":  {`{"t":1,"op":"delete","key":"a"`, trace.ErrNotJSON, "line ends inside"},
		"other bracket":       {`{"t":1,"op":"delete","key":"a"]`, trace.ErrNotJSON, "invalid character ']'"},
		"two objects":         {`{"t":1,"op":"delete","key":"a"} {}`, trace.ErrNotJSON, "something follows"},
		"brace too many":      {`{"t":1,"op":"delete","key":"a"}}`, trace.ErrNotJSON, "invalid character '}'"},
		"trailing comma":      {`{"t":1,"op":"delete","key":"a",}`, trace.ErrNotJSON, "invalid character '}'"},
		"Latin-1":             {"{\"t\":1,\"op\":\"delete\",\"key\":\"\xe9\"}", trace.ErrNotJSON, "UTF-8"},
		"no time":             {`{"op":"delete","key":"a"}`, trace.ErrMissingField, `"t"`},
		"no op":               {`{"t":1,"key":"a"}`, trace.ErrMissingField, `"op"`},
		"no key":              {`{"t":1,"op":"delete"}`, trace.ErrMissingField, `"key"`},
		"put without version": {`{"t":1,"op":"put","key":"a"}`, trace.ErrMissingField, `"version"`},
		"unknown op":          {`{"t":1,"op":"patch","key":"a"}`, trace.ErrUnknownOp, `"patch": it is one of put, delete`},
		"op in capitals":      {`{"t":1,"op":"PUT","key":"a","version":"v"}`, trace.ErrUnknownOp, `"PUT"`},
		"empty op":            {`{"t":1,"op":"","key":"a","version":"v"}`, trace.ErrUnknownOp, `""`},
		"unknown field":       {`{"t":1,"op":"delete","key":"a","size":3}`, trace.ErrUnknownField, `"size"`},
		"field in capitals":   {`{"t":1,"op":"delete","Key":"a"}`, trace.ErrUnknownField, `"Key"`},
		"field twice":         {`{"t":1,"op":"delete","key":"a","key":"b"}`, trace.ErrDuplicateField, `"key"`},
		"op is a number":      {`{"t":1,"op":7,"key":"a"}`, trace.ErrBadValue, `"op": 7`},
		"op twice":            {`{"t":1,"op":"delete","op":"delete","key":"a"}`, trace.ErrDuplicateField, `"op"`},
		"version is a number": {`{"t":1,"op":"put","key":"a","version":7}`, trace.ErrBadValue, `"version": 7`},
		"version twice":       {`{"t":1,"op":"put","key":"a","version":"v","version":"v"}`, trace.ErrDuplicateField, `"version"`},
		"key is a number":     {`{"t":1,"op":"delete","key":7}`, trace.ErrBadValue, `"key": 7`},
		"key is null":         {`{"t":1,"op":"delete","key":null}`, trace.ErrBadValue, `"key": null`},
		"time is a string":    {`{"t":"1","op":"delete","key":"a"}`, trace.ErrBadValue, `"t": "1"`},
		"time is null":        {`{"t":null,"op":"delete","key":"a"}`, trace.ErrBadValue, `"t": null`},
		"time is too far":     {`{"t":1e400,"op":"delete","key":"a"}`, trace.ErrBadValue, `1e400`},
		"time in nanoseconds": {`{"t":1460920094000000000,"op":"delete","key":"a"}`, trace.ErrBadValue, `seconds since 1970`},
		"unpaired surrogate":  {`{"t":1,"op":"delete","key":"a\udcff"}`, trace.ErrBadValue, "unpaired surrogate"},
		"half of two pairs":   {`{"t":1,"op":"delete","key":"\ud83d\ude00\ud83d\ud83d\ude00"}`, trace.ErrBadValue, "unpaired surrogate"},
		"half after a break":  {`{"t":1,"op":"put","key":"a","version":"\n\udcff"}`, trace.ErrBadValue, "unpaired surrogate"},
		"half after a tab":    {`{"t":1,"op":"put","key":"a","version":"\td83d\ude00"}`, trace.ErrBadValue, "unpaired surrogate"},
		"half before letters": {`{"t":1,"op":"put","key":"a","version":"\ud83dxude00"}`, trace.ErrBadValue, "unpaired surrogate"},
		"absolute key":        {`{"t":1,"op":"delete","key":"/a"}`, store.ErrInvalidKey, "empty path segment"},
		"empty key":           {`{"t":1,"op":"delete","key":""}`, store.ErrInvalidKey, "it is empty"},
		"key leads upwards":   {`{"t":1,"op":"delete","key":"a/../b"}`, store.ErrInvalidKey, "not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := read(history + c.line + "\n" + history)
			require.Len(t, good, 8, "the lines around it are good")
			require.Len(t, bad, 1)
			require.ErrorIs(t, bad[0], c.is)
			require.ErrorContains(t, bad[0], c.mention)
			require.Equal(t, 5, bad[0].Line)
			require.Equal(t, 4, bad[0].Good)
			require.True(t, strings.HasPrefix(bad[0].Error(), "t:5: "), bad[0])
		})
	}
}

// A string may have the character by which JSON replaces half of a surrogate pair, also beside whole
// pairs and what looks like half of one.
func TestRead_ReplacementCharacterIsAsGoodAsAnother(t *testing.T) {
	for version, want := range map[string]string{
		`\ud83d\ude00 �`:      "😀 �",
		`C:\\udata �`:         `C:\udata �`,
		`\ufffd \uD83D\uDE00`: "� 😀",
	} {
		good, bad := read(`{"t":1,"op":"put","key":"a","version":"` + version + `"}`)
		require.Empty(t, bad)
		require.Equal(t, want, good[0].Version)
	}
}

func TestRead_ErrorsQuoteLittleOfALongLine(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, line := range []string{
		`{"` + long + `":1}`,
		`{"t":"` + long + `"}`,
		`{"t":1,"op":"` + long + `","key":"a"}`,
		`{"t":1,"op":"delete","key":"` + long + `"}`,
	} {
		_, bad := read(line)
		require.Len(t, bad, 1)
		require.Less(t, len(bad[0].Error()), 300)
	}
}

// Wherever a compressed trace is cut, the lines before the cut are read, and an error
// follows: a cut is never taken for the end.
func TestRead_TruncatedGzipIsTruncatedWhereverItIsCut(t *testing.T) {
	whole := zipped(t, []byte(strings.Repeat(history, 20)))
	all, bad := collect(trace.Read("t", bytes.NewReader(whole)))
	require.Empty(t, bad)
	for cut := 2; cut < len(whole); cut++ {
		good, bad := collect(trace.Read("t", bytes.NewReader(whole[:cut])))
		require.Len(t, bad, 1, "cut at %d", cut)
		require.ErrorIs(t, bad[0], trace.ErrTruncated)
		require.ErrorIs(t, bad[0], io.ErrUnexpectedEOF)
		require.Zero(t, bad[0].Line)
		require.Equal(t, len(good), bad[0].Good)
		require.Equal(t, all[:len(good)], append([]trace.Change{}, good...))
	}
	_, bad = collect(trace.Read("t", bytes.NewReader(whole[:len(whole)-1])))
	require.EqualError(t, bad[0], "t: file is truncated: unexpected EOF (good lines before that: 80)")
}

func TestRead_DamagedGzipIsCorrupt(t *testing.T) {
	whole := zipped(t, []byte(history))
	for name, damage := range map[string]func([]byte) []byte{
		"checksum":         func(b []byte) []byte { b[len(b)-5] ^= 1; return b },
		"header":           func(b []byte) []byte { b[2] = 0; return b },
		"data":             func(b []byte) []byte { b[10] = 0xff; return b },
		"something behind": func(b []byte) []byte { return append(b, "more and more"...) },
	} {
		t.Run(name, func(t *testing.T) {
			_, bad := collect(trace.Read("t", bytes.NewReader(damage(bytes.Clone(whole)))))
			require.NotEmpty(t, bad)
			last := bad[len(bad)-1]
			require.ErrorIs(t, last, trace.ErrCorrupt)
			require.Zero(t, last.Line)
		})
	}
}

func TestRead_EmptyTrace(t *testing.T) {
	for name, content := range map[string][]byte{"nothing": nil, "gzip of nothing": zipped(t, nil)} {
		good, bad := collect(trace.Read("t", bytes.NewReader(content)))
		require.Empty(t, good, name)
		require.Len(t, bad, 1, name)
		require.ErrorIs(t, bad[0], trace.ErrEmpty, name)
	}
}

func TestRead_HandsOnErrorsOfTheReader(t *testing.T) {
	broken := errors.New("disk on fire")
	good, bad := collect(trace.Read("t", io.MultiReader(strings.NewReader(history), iotest.ErrReader(broken))))
	require.Len(t, good, 4)
	require.Len(t, bad, 1)
	require.ErrorIs(t, bad[0], broken)
	require.Equal(t, 4, bad[0].Good)

	good, bad = collect(trace.Read("t", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(history)))))
	require.Empty(t, good)
	require.Len(t, bad, 1)
	require.ErrorIs(t, bad[0], iotest.ErrTimeout, "which comes only once, with the first bytes")

	_, bad = collect(trace.ReadFile(t.TempDir()))
	require.Len(t, bad, 1, "a directory can be opened but not read")
}

func TestRead_GoesOnWhereTheLoopWasLeft(t *testing.T) {
	want, _ := collect(trace.Read("t", strings.NewReader(history)))
	var got []trace.Change
	changes := trace.Read("t", strings.NewReader(history))
	for range want {
		for change, err := range changes {
			require.NoError(t, err)
			got = append(got, change)
			break
		}
	}
	require.Equal(t, want, got)
	for change, err := range changes {
		require.Fail(t, "there is nothing left", "%v, %v", change, err)
	}
}

func TestRead_StopsWhenTheLoopIsLeft(t *testing.T) {
	r := strings.NewReader(strings.Repeat(history, 10_000))
	for range trace.Read("t", r) {
		break
	}
	require.Positive(t, r.Len())
	for _, err := range trace.Read("t", strings.NewReader("bad\nbad\n")) {
		require.ErrorContains(t, err, "t:1: ")
		break
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(history))
	f.Add(zipped(f, []byte(history)))
	f.Add([]byte(`{"t":1,"op":"put","key":"a","version":"\ud800"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		good, bad := collect(trace.Read("t", bytes.NewReader(content)))
		require.True(t, len(good) > 0 || len(bad) > 0, "nothing is passed over in silence")
		for _, c := range good {
			require.NoError(t, store.ValidateKey(c.Key))
			require.Contains(t, []trace.Op{trace.Put, trace.Delete}, c.Op)
		}
	})
}
