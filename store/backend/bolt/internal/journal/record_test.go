package journal_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func ExampleRecord_AppendTo() {
	data := journal.Record{Kind: journal.Put, Key: []byte("hall"), Value: []byte("on"), Prev: 3, Created: 2}.AppendTo(nil, 7)
	r, err := journal.ParseRecord(7, data)
	fmt.Printf("%s=%s, created at %d, before it %d, %v\n", r.Key, r.Value, r.Created, r.Prev, err)
	_, err = journal.ParseRecord(8, data)
	fmt.Println(err)
	// Output:
	// hall=on, created at 2, before it 3, <nil>
	// the record's checksum is wrong
}

func TestRecord_ComesBackAsItWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revision := rapid.Uint64Range(2, math.MaxUint64).Draw(t, "revision")
		times := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(-1e11, 1e11).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanos")).UTC()
		})
		r := journal.Record{
			Kind:    rapid.SampledFrom([]journal.Kind{journal.Put, journal.Delete, journal.Emit}).Draw(t, "kind"),
			Tag:     rapid.Byte().Draw(t, "tag"),
			Sealed:  rapid.Bool().Draw(t, "sealed"),
			Lost:    rapid.Bool().Draw(t, "lost"),
			Prev:    rapid.Uint64Range(0, revision-1).Draw(t, "prev"),
			Created: rapid.Uint64Range(0, revision).Draw(t, "created"),
			Written: times.Draw(t, "written"),
			Key:     rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "key"),
			Value:   rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "value"),
		}
		if rapid.Bool().Draw(t, "expires") {
			r.Expires = times.Draw(t, "expiry")
		}
		data := r.AppendTo([]byte("before"), revision)
		require.LessOrEqual(t, len(data)-6, r.Size())
		got, err := journal.ParseRecord(revision, data[6:])
		require.NoError(t, err)
		require.Equal(t, r, got)

		at := rapid.IntRange(6, len(data)-1).Draw(t, "damaged byte")
		data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = journal.ParseRecord(revision, data[6:])
		require.Error(t, err)
	})
}

func TestRecord_ZeroTimeIsNoExpiryButAValidTime(t *testing.T) {
	data := journal.Record{Kind: journal.Put, Key: []byte("k")}.AppendTo(nil, 1)
	r, err := journal.ParseRecord(1, data)
	require.NoError(t, err)
	require.True(t, r.Written.IsZero())
	require.True(t, r.Expires.IsZero())
}

func FuzzParseRecord(f *testing.F) {
	r := journal.Record{Kind: journal.Put, Key: []byte("key"), Value: []byte("value"), Written: noon, Expires: noon, Prev: 3, Created: 2}
	f.Add(uint64(9), r.AppendTo(nil, 9))
	f.Add(uint64(0), []byte{})
	f.Add(uint64(1), bytes.Repeat([]byte{255}, 40))
	f.Fuzz(func(t *testing.T, revision uint64, data []byte) {
		journal.ParseUnchecked(revision, data)
		r, err := journal.ParseRecord(revision, data)
		if err != nil {
			return
		}
		again, err := journal.ParseRecord(revision, r.AppendTo(nil, revision))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
