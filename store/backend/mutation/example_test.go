package mutation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/backend/mutation"
)

// A reader sorts out what it was given, and so changes it for all.
func ExampleDetect() {
	ctx := context.Background()
	schema := boxSchema()
	storage, err := memory.New(schema, memory.Options{FirstRevision: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer storage.Close()
	b, audit := mutation.Detect(storage, &schema, func(err error) {
		var mutated *mutation.Error
		fmt.Println(errors.As(err, &mutated), mutated.Key, mutated.Revision)
	})
	shared := &content{Name: "a", Tags: map[string]string{"color": "red"}}
	if _, err := b.Put(ctx, drafted(shared), nil, backend.PutOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	delete(shared.Tags, "color")
	audit()
	// Output: true a 2
}
