package informer_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Price is an object of a service that can only be asked for all of them.
type Price struct {
	Item  string
	Cents int
}

var priceConfig = engine.Config[Price]{Key: func(p Price) string { return p.Item }}

// polled is the prices as of the service's last answer. The backend in memory finds out what has
// changed, and numbers and keeps the changes.
type polled struct {
	*memory.Backend
	answered chan struct{} // closed after the first answer
}

func newPolled() *polled {
	storage, err := memory.New(priceConfig.Schema(), memory.Options{})
	must(err)
	return &polled{storage, make(chan struct{})}
}

// List waits for the first answer, since before that it is not known which prices there are.
func (p *polled) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	select {
	case <-p.answered:
		return p.Backend.List(ctx, opts)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Traits say that List may wait.
func (p *polled) Traits() backend.Traits {
	traits := p.Backend.Traits()
	traits.Blocks = true
	return traits
}

// poll takes over an answer. A program calls it by a ticker, in one goroutine.
func (p *polled) poll(ctx context.Context, ask func(context.Context) ([]Price, error)) error {
	prices, err := ask(ctx)
	if err != nil {
		return err // what there is stays
	}
	storage := backend.NewStorage(p.Backend, priceConfig.Schema())
	gone, err := p.keys(ctx)
	if err != nil {
		return err
	}
	for _, price := range prices {
		delete(gone, price.Item)
		draft := store.Header(&engine.Object[Price]{Key: price.Item, Value: price})
		if _, err := storage.Put(ctx, draft, nil, backend.UpdateOptions{CreateIfMissing: true}); err != nil {
			return err
		}
	}
	for key := range gone {
		if _, err := storage.Delete(ctx, key, backend.DeleteOptions{}); err != nil {
			return err
		}
	}
	select {
	case <-p.answered:
	default:
		close(p.answered)
	}
	return nil
}

// keys returns the keys that there are.
func (p *polled) keys(ctx context.Context) (map[string]bool, error) {
	list, err := p.Backend.List(ctx, backend.ListOptions{})
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for _, o := range list.Items {
		keys[o.Key] = true
	}
	return keys, nil
}

// A cache in front of a service that has no watch. While the service is down, it has the last
// answer; before the first one it has not synced.
func Example_polling() {
	ctx := context.Background()
	service := newPolled()
	defer service.Close()
	prices, err := informer.New(informer.Config[Price]{Source: engine.SourceOf[Price](service)})
	must(err)
	defer prices.Close()
	handler, err := prices.AddEventHandler(informer.HandlerFuncs[Price]{
		UpdateFunc: func(_, now *informer.Object[Price]) { fmt.Println(now.Key, "costs", now.Value.Cents) },
		DeleteFunc: func(gone informer.Deleted[Price]) { fmt.Println(gone.Key, "is gone") },
	}, informer.HandlerOptions{})
	must(err)

	down := func(context.Context) ([]Price, error) { return nil, errors.New("the service is down") }
	fmt.Println(service.poll(ctx, down), prices.HasSynced())
	must(service.poll(ctx, func(context.Context) ([]Price, error) { return []Price{{"bolt", 7}, {"nut", 5}}, nil }))
	must(informer.WaitFor(ctx, prices, handler))
	must(service.poll(ctx, func(context.Context) ([]Price, error) { return []Price{{"bolt", 8}}, nil }))
	rev, err := service.Revision(ctx)
	must(err)
	must(prices.WaitForRevision(ctx, rev))
	must(handler.Remove(ctx, informer.Drain))
	fmt.Println(service.poll(ctx, down), prices.Get("bolt").Value.Cents)
	// Output:
	// the service is down false
	// bolt costs 8
	// nut is gone
	// the service is down 8
}
