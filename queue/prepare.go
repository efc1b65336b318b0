package queue

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// preparation calls the user's functions for what comes in, before any lock is
// taken and exactly once for each object.
type preparation[T any] struct {
	key       store.KeyFunc[T]
	transform func(T) (T, error)
	onBad     func(T, error)
}

// keyed is an object with its key.
type keyed[T any] struct {
	key    string
	object T
}

// listing is a list whose objects are prepared.
type listing[T any] struct {
	objects []keyed[T]
	// kept are the keys of listed objects for which Transform failed.
	kept []string
}

// keys returns the set of keys that are listed.
func (l *listing[T]) keys() map[string]bool {
	listed := make(map[string]bool, len(l.objects))
	for _, o := range l.objects {
		listed[o.key] = true
	}
	for _, key := range l.kept {
		listed[key] = true
	}
	return listed
}

func (p *preparation[T]) keyOf(object T) (key string, err error) {
	if panicked := usercode.Call("Key", "", func() { key, err = p.key(object) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return "", &store.KeyFuncError[T]{Item: object, Err: err}
	}
	return key, nil
}

// one prepares an object. If Transform fails, the key is returned all the same.
func (p *preparation[T]) one(object T) (keyed[T], error) {
	key, err := p.keyOf(object)
	if err != nil || p.transform == nil {
		return keyed[T]{key, object}, err
	}
	out := keyed[T]{key: key}
	if panicked := usercode.Call("Transform", key, func() { out.object, err = p.transform(object) }); panicked != nil {
		err = panicked
	}
	if err != nil {
		return out, &store.TransformError{Key: key, Err: err}
	}
	return out, nil
}

// all prepares a list. An object for which a function fails fails the list, unless
// onBad is set.
func (p *preparation[T]) all(objects []T) (listing[T], error) {
	list := listing[T]{objects: make([]keyed[T], 0, len(objects))}
	for _, object := range objects {
		one, err := p.one(object)
		switch {
		case err == nil:
			list.objects = append(list.objects, one)
		case p.onBad == nil:
			return listing[T]{}, err
		default:
			if panicked := usercode.Call("OnBadItem", one.key, func() { p.onBad(object, err) }); panicked != nil {
				return listing[T]{}, panicked
			}
			if one.key != "" {
				list.kept = append(list.kept, one.key)
			}
		}
	}
	return list, nil
}
