package codec_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/codec"
)

func key(id string, b byte) codec.Key {
	return codec.Key{ID: id, Secret: bytes.Repeat([]byte{b}, codec.KeySize)}
}

func newAESGCM(t testing.TB, keys ...codec.Key) *codec.AESGCM {
	t.Helper()
	s, err := codec.NewAESGCM(keys...)
	require.NoError(t, err)
	return s
}

func TestAESGCM_GivesBackWhatItTook(t *testing.T) {
	s := newAESGCM(t, key("a", 1))
	for size := range 100 {
		in, aad := bytes.Repeat([]byte{7}, size*10), codec.AAD("pods", "x")
		sealed, err := s.Seal(in, aad)
		require.NoError(t, err)
		require.False(t, size > 2 && bytes.Contains(sealed, in))
		out, stale, err := s.Open(sealed, aad)
		require.NoError(t, err)
		require.False(t, stale)
		require.True(t, bytes.Equal(in, out))
	}
}

func TestAESGCM_NeverSealsTwiceAlike(t *testing.T) {
	s := newAESGCM(t, key("a", 1))
	seen := map[string]bool{}
	for range 1000 {
		sealed, err := s.Seal([]byte("x"), nil)
		require.NoError(t, err)
		require.False(t, seen[string(sealed)])
		seen[string(sealed)] = true
	}
}

// From one key to the next: readable all the time, stale until sealed anew,
// unreadable only when the old key is gone too early.
func TestAESGCM_RotatesKeys(t *testing.T) {
	aad := codec.AAD("pods", "x")
	sealed, err := newAESGCM(t, key("a", 1)).Seal([]byte("x"), aad)
	require.NoError(t, err)

	both := newAESGCM(t, key("b", 2), key("a", 1))
	plain, stale, err := both.Open(sealed, aad)
	require.NoError(t, err)
	require.True(t, stale)
	anew, err := both.Seal(plain, aad)
	require.NoError(t, err)

	rotated := newAESGCM(t, key("b", 2))
	_, stale, err = rotated.Open(anew, aad)
	require.NoError(t, err)
	require.False(t, stale)

	_, _, err = rotated.Open(sealed, aad)
	var unknown *codec.UnknownKeyError
	require.ErrorAs(t, err, &unknown)
	require.ErrorIs(t, err, codec.ErrUnknownKey)
	require.Equal(t, "a", unknown.ID)
}

func TestAESGCM_OpensNothingThatWasChanged(t *testing.T) {
	s := newAESGCM(t, key("a", 1), key("b", 2))
	aad := codec.AAD("pods", "x")
	sealed, err := s.Seal([]byte("secret"), aad)
	require.NoError(t, err)
	for i := range sealed {
		for bit := range 8 {
			forged := bytes.Clone(sealed)
			forged[i] ^= 1 << bit
			_, _, err := s.Open(forged, aad)
			require.Error(t, err, "byte %d, bit %d", i, bit)
		}
		_, _, err := s.Open(sealed[:i], aad)
		require.Error(t, err, "cut at %d", i)
	}
	for _, other := range [][]byte{nil, codec.AAD("pods", "y"), codec.AAD("pod", "sx")} {
		_, _, err := s.Open(sealed, other)
		require.ErrorIs(t, err, codec.ErrNotAuthentic)
	}
}

// A value from before there was a Sealer is not reported as one of an unknown key.
func TestAESGCM_KnowsWhatWasNeverSealed(t *testing.T) {
	_, _, err := newAESGCM(t, key("a", 1)).Open([]byte(`{"metadata":{"name":"hall","namespace":"default"},"spec":{"size":1,"colour":"red"}}`), nil)
	require.ErrorIs(t, err, codec.ErrNotAuthentic)
	require.NotErrorIs(t, err, codec.ErrUnknownKey)
}

// A key under another's ID does not open its values.
func TestAESGCM_DoesNotTrustTheID(t *testing.T) {
	sealed, err := newAESGCM(t, key("a", 1)).Seal([]byte("x"), nil)
	require.NoError(t, err)
	_, _, err = newAESGCM(t, key("a", 2)).Open(sealed, nil)
	require.ErrorIs(t, err, codec.ErrNotAuthentic)
}

func TestNewAESGCM_RefusesUnusableKeys(t *testing.T) {
	long := string(bytes.Repeat([]byte{'x'}, 256))
	for name, of := range map[string]struct {
		keys []codec.Key
		want codec.InvalidKeyError
	}{
		"none":         {nil, codec.InvalidKeyError{Problem: "there is none: give at least one"}},
		"no ID":        {[]codec.Key{key("", 1)}, codec.InvalidKeyError{Problem: "the ID must have 1 to 255 bytes"}},
		"long ID":      {[]codec.Key{key(long, 1)}, codec.InvalidKeyError{ID: long, Problem: "the ID must have 1 to 255 bytes"}},
		"short secret": {[]codec.Key{{ID: "a", Secret: make([]byte, 16)}}, codec.InvalidKeyError{ID: "a", Problem: "the secret has 16 bytes; it must have 32"}},
		"ID twice":     {[]codec.Key{key("a", 1), key("a", 2)}, codec.InvalidKeyError{ID: "a", Problem: "two keys have this ID: name each key differently"}},
	} {
		_, err := codec.NewAESGCM(of.keys...)
		require.Equal(t, &of.want, err, name)
		require.ErrorIs(t, err, codec.ErrInvalidKey, name)
	}
}

func TestNewAESGCM_CopiesTheSecret(t *testing.T) {
	k := key("a", 1)
	s := newAESGCM(t, k)
	clear(k.Secret)
	sealed, err := s.Seal([]byte("x"), nil)
	require.NoError(t, err)
	_, _, err = newAESGCM(t, key("a", 1)).Open(sealed, nil)
	require.NoError(t, err)
}

// sealedOnce is "x", sealed with key("a", 1) for "aad": fixed, so that all of
// the fuzzer's processes know the one value that opens.
const sealedOnce = "010161709befd56c935771a84c00fbe48a3cd3ff60aed3d37eb1354e6c7005e4e53eeba3979b71ce1efebbbb"

// The ID of a key may be as long as its length's byte can tell.
func TestAESGCM_OpensWhatAKeyOfTheLongestIDHasSealed(t *testing.T) {
	for _, size := range []int{253, 254, 255} {
		s := newAESGCM(t, key(strings.Repeat("k", size), 1))
		sealed, err := s.Seal([]byte("secret"), nil)
		require.NoError(t, err)
		plain, _, err := s.Open(sealed, nil)
		require.NoError(t, err)
		require.Equal(t, "secret", string(plain))
	}
}

func FuzzAESGCM_Open(f *testing.F) {
	s := newAESGCM(f, key("a", 1), key("b", 2))
	sealed, err := hex.DecodeString(sealedOnce)
	require.NoError(f, err)
	_, _, err = s.Open(sealed, []byte("aad"))
	require.NoError(f, err)
	f.Add(sealed, []byte("aad"))
	f.Add([]byte{1, 255}, []byte{})
	f.Add(append([]byte{1, 255}, make([]byte, 400)...), []byte{})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, data, aad []byte) {
		plain, _, err := s.Open(data, aad)
		if err == nil && (!bytes.Equal(data, sealed) || !bytes.Equal(aad, []byte("aad"))) {
			t.Errorf("opened what was not sealed: %q", plain)
		}
	})
}
