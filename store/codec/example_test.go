package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/store/codec"
)

type lamp struct {
	Name string
	On   bool
}

func ExampleJSON() {
	tag, data, err := codec.JSON{}.Encode(&lamp{Name: "hall", On: true})
	fmt.Println(tag, string(data), err)

	var l lamp
	err = codec.JSON{}.Decode(tag, data, &l)
	fmt.Println(l.Name, l.On, err)
	// Output:
	// 0 {"Name":"hall","On":true} <nil>
	// hall true <nil>
}

// Large values are compressed, small ones are left readable.
func ExampleGzip() {
	zip := codec.Gzip{MinSize: 100}
	for _, name := range []string{"hall", strings.Repeat("very ", 200) + "long"} {
		tag, data, err := zip.Encode(&lamp{Name: name})
		fmt.Println(tag, len(data) < 100, err)
	}
	// Output:
	// 0 true <nil>
	// 128 true <nil>
}

// A new key comes first; what the old one sealed can still be opened.
func ExampleAESGCM() {
	march := codec.Key{ID: "2026-03", Secret: bytes.Repeat([]byte{3}, codec.KeySize)}
	april := codec.Key{ID: "2026-04", Secret: bytes.Repeat([]byte{4}, codec.KeySize)}
	before, _ := codec.NewAESGCM(march)
	after, _ := codec.NewAESGCM(april, march)

	sealed, _ := before.Seal([]byte("42"), codec.AAD("accounts", "berlin/7"))
	plain, stale, err := after.Open(sealed, codec.AAD("accounts", "berlin/7"))
	fmt.Println(string(plain), stale, err)

	_, _, err = after.Open(sealed, codec.AAD("accounts", "berlin/8"))
	fmt.Println(errors.Is(err, codec.ErrNotAuthentic))
	// Output:
	// 42 true <nil>
	// true
}

func ExampleNewAESGCM() {
	_, err := codec.NewAESGCM(codec.Key{ID: "2026-03", Secret: []byte("hunter2")})
	fmt.Println(err)
	// Output: invalid sealing key "2026-03": the secret has 7 bytes; it must have 32
}

func ExampleAAD() {
	fmt.Println(bytes.Equal(codec.AAD("pod", "s/a"), codec.AAD("pods", "/a")))
	// Output: false
}
