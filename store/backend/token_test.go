package backend_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestToken_SurvivesItsEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := backend.Token{
			Revision: store.Revision(rapid.Uint64Range(0, math.MaxInt64).Draw(t, "revision")),
			Start:    rapid.StringMatching(`[a-z<>&é"]{1,9}(/[a-z]{1,9}){0,3}`).Draw(t, "start"),
			Timeline: rapid.StringMatching(`([a-z0-9.]{1,20})?`).Draw(t, "timeline"),
		}
		got, err := backend.ParseToken(token.Encode())
		require.NoError(t, err)
		require.Equal(t, token, got)
	})
}

func TestExpiredContinue_OffersATokenIfThereIsOne(t *testing.T) {
	expired := &store.ExpiredError{Requested: 3, Oldest: 5}
	require.ErrorContains(t, &backend.ExpiredContinueError{Expired: expired, Continue: "x"}, "the token in this error")
	require.EqualError(t, &backend.ExpiredContinueError{Expired: expired}, expired.Error())
}

func TestToken_BrokenOnesAreRefusedWithAReason(t *testing.T) {
	encode := func(text string) string {
		sum := crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))
		return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte(text), sum))
	}
	good := encode(`{"v":2,"rv":5,"start":"a"}`)
	_, err := backend.ParseToken(good)
	require.NoError(t, err)
	for token, reason := range map[string]string{
		"?":                                       "base64url",
		good[:len(good)-1]:                        "base64url",
		good + "=":                                "base64url",
		encode(`{"v":2,"rv":5,"start":"a"`):       "broken",
		encode(`{"v":2,"rv":5,"start":"a"} {}`):   "broken",
		encode(`{"v":2,"rv":5,"begin":"a"}`):      "broken",
		encode(`{"v":2,"rv":"5","start":"a"}`):    "broken",
		encode(`[]`):                              "broken",
		"":                                        "checksum",
		encode(`{"v":3,"rv":5,"start":"a"}`):      "version",
		encode(`{"rv":5,"start":"a"}`):            "version",
		encode(`{"v":2,"rv":0,"start":"a"}`):      "revision",
		encode(`{"v":2,"start":"a"}`):             "revision",
		encode(`{"v":2,"rv":-2,"start":"a"}`):     "revision",
		encode(`{"v":2,"rv":5,"start":""}`):       "not a key",
		encode(`{"v":2,"rv":5,"start":"../etc"}`): "not a key",
	} {
		_, err := backend.ParseToken(token)
		require.ErrorIs(t, err, store.ErrInvalidContinue, token)
		require.ErrorContains(t, err, reason, token)
		require.ErrorContains(t, err, "list again", "the way out")
	}
}

// Each change of one byte, and each cut, is refused, since a token that means another
// place would skip objects.
func TestToken_EachChangedByteIsRefused(t *testing.T) {
	for _, token := range []backend.Token{{Revision: 5, Start: "a"}, {Revision: 1 << 60, Start: "ns/pod-10"}, {Start: "ns/é"}} {
		good := token.Encode()
		for i := range len(good) {
			_, err := backend.ParseToken(good[:i])
			require.ErrorIs(t, err, store.ErrInvalidContinue, "cut at %d", i)
			for b := range 256 {
				changed := []byte(good)
				if changed[i] == byte(b) {
					continue
				}
				changed[i] = byte(b)
				_, err := backend.ParseToken(string(changed))
				require.ErrorIs(t, err, store.ErrInvalidContinue, "%q in place of %q at %d", b, good[i], i)
			}
		}
	}
}

func TestToken_OfAnotherPrefixIsRefused(t *testing.T) {
	token := backend.Token{Revision: 5, Start: "foobar/a"}.Encode()
	_, err := backend.ListOptions{Prefix: "foo", Continue: token}.Scan()
	require.ErrorIs(t, err, store.ErrInvalidContinue)
	_, err = backend.ListOptions{Prefix: "foobar", Continue: token}.Scan()
	require.NoError(t, err)
}

func TestToken_OfTheFutureSaysSo(t *testing.T) {
	scan, err := backend.ListOptions{Continue: backend.Token{Revision: 9, Start: "a"}.Encode()}.Scan()
	require.NoError(t, err)
	err = scan.Check(0, 8)
	require.ErrorIs(t, err, store.ErrInvalidContinue)
	require.ErrorIs(t, err, store.ErrFuture)
	require.NoError(t, scan.Check(9, 9))
	require.ErrorIs(t, scan.Check(10, 10), store.ErrExpired)
}
