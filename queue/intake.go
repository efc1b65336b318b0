package queue

import "github.com/watchmill/watchmill/store"

// intake runs the user's functions on what comes in, before any lock is taken
// and exactly once for each object.
type intake[T any] struct {
	key       store.KeyFunc[T]
	transform func(T) (T, error)
	onBad     func(T, error)
}

// keyed is an object that has been taken in.
type keyed[T any] struct {
	key    string
	object T
}

// listing is a list that has been taken in.
type listing[T any] struct {
	objects []keyed[T]
	// kept are the keys of objects that exist but could not be taken in.
	kept []string
}

// has returns the set of keys that exist according to the list.
func (l *listing[T]) has() map[string]bool {
	has := make(map[string]bool, len(l.objects))
	for _, o := range l.objects {
		has[o.key] = true
	}
	for _, key := range l.kept {
		has[key] = true
	}
	return has
}

func (in *intake[T]) keyOf(object T) (key string, err error) {
	func() {
		defer recovered(&err)
		key, err = in.key(object)
	}()
	if err != nil {
		return "", &store.KeyFuncError[T]{Item: object, Err: err}
	}
	return key, nil
}

// one takes in an object. If its transform fails, the key is returned all the
// same.
func (in *intake[T]) one(object T) (keyed[T], error) {
	key, err := in.keyOf(object)
	if err != nil || in.transform == nil {
		return keyed[T]{key, object}, err
	}
	out := keyed[T]{key: key}
	func() {
		defer recovered(&err)
		out.object, err = in.transform(object)
	}()
	if err != nil {
		return out, &store.TransformError{Key: key, Err: err}
	}
	return out, nil
}

// all takes in a list. A bad object fails the list, unless there is somebody to
// report it to.
func (in *intake[T]) all(objects []T) (list listing[T], err error) {
	defer recovered(&err)
	list.objects = make([]keyed[T], 0, len(objects))
	for _, object := range objects {
		one, err := in.one(object)
		switch {
		case err == nil:
			list.objects = append(list.objects, one)
		case in.onBad == nil:
			return listing[T]{}, err
		default:
			in.onBad(object, err)
			if one.key != "" {
				list.kept = append(list.kept, one.key)
			}
		}
	}
	return list, nil
}
