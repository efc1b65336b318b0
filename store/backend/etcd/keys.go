package etcd

import (
	"strings"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// keyspace is where the objects of one backend are in etcd:
//
//	PREFIX!//compacted   the floor of the history, outside of the range below
//	PREFIX/KEY           an object
//
// An empty path segment makes the first one a key that no backend takes for an
// object's, whatever its prefix.
type keyspace struct {
	root  string // of the objects, with the slash
	floor string
}

func newKeyspace(prefix string) keyspace {
	return keyspace{root: prefix + "/", floor: prefix + "!//compacted"}
}

// validatePrefix reports what is wrong with Config.Prefix.
func validatePrefix(prefix string) error {
	invalid := func(problem string) error { return &usercode.ConfigError{Field: "Prefix", Problem: problem} }
	switch {
	case prefix == "":
		return invalid(`is empty; give the objects a place of their own, such as "/shop/pods"`)
	case !utf8.ValidString(prefix):
		return invalid("is not valid UTF-8")
	case strings.HasSuffix(prefix, "/"):
		return invalid("ends with a slash, which goes between it and the keys; leave that out")
	}
	if err := store.ValidateKey(strings.TrimPrefix(prefix, "/")); err != nil {
		return invalid("is not a path: " + err.Error())
	}
	return nil
}

// of returns where the object under key is.
func (k keyspace) of(key string) string { return k.root + key }

// key returns the key of the object at a place, which may be invalid.
func (k keyspace) key(place []byte) string { return strings.TrimPrefix(string(place), k.root) }

// span is a range of places: from start up to, without, end.
type span struct{ start, end string }

// under returns the range of all keys that begin with k.root + prefix.
func (k keyspace) under(prefix string) span {
	start := k.root + prefix
	return span{start, clientv3.GetPrefixRangeEnd(start)}
}

// watched returns the smallest range that holds all keys under prefix. It may hold
// others as well.
func (k keyspace) watched(prefix string) span { return k.under(prefix) }

// listed returns the ranges that hold exactly the keys under prefix that are
// greater than after, in order.
func (k keyspace) listed(prefix, after string) []span {
	var spans []span
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		spans = []span{k.under(prefix)}
	} else {
		one := k.of(prefix)
		spans = []span{{one, one + "\x00"}, k.under(prefix + "/")}
	}
	if after == "" {
		return spans
	}
	rest := spans[:0]
	for _, s := range spans {
		s.start = max(s.start, k.of(after)+"\x00")
		if s.start < s.end {
			rest = append(rest, s)
		}
	}
	return rest
}
