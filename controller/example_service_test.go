package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/cache"
)

type Order struct{ ID, Item, Phase string }

type Stock struct {
	Item string
	Left int
}

// shop has two kinds in one file, whose engines share a host.
type shop struct {
	orders *engine.Engine[Order]
	stock  *engine.Engine[Stock]
	mirror *informer.SharedInformer[Order]
	sales  *controller.Controller[Order]
	// opened has the Close of all that was opened, in that order.
	opened []func() error
}

// open opens what it can, even if it fails: close closes that.
func (s *shop) open(path string) error {
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, file.Close)
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, host.Close)

	orders := engine.Config[Order]{Host: host, Name: "orders", Key: func(o Order) string { return o.ID }}
	if orders.Backend, err = bolt.New(file, "orders", bolt.Config{Schema: orders.Schema()}); err != nil {
		return err
	}
	if s.orders, err = engine.New(orders); err != nil {
		return err
	}
	s.opened = append(s.opened, s.orders.Close)
	stock := engine.Config[Stock]{Host: host, Name: "stock", Key: func(s Stock) string { return s.Item }}
	if stock.Backend, err = bolt.New(file, "stock", bolt.Config{Schema: stock.Schema()}); err != nil {
		return err
	}
	if s.stock, err = engine.New(stock); err != nil {
		return err
	}
	s.opened = append(s.opened, s.stock.Close)

	s.mirror, err = informer.New(informer.Config[Order]{
		Source: s.orders.Source(), Host: host, Name: "orders",
		Indexers: cache.Indexers[Order]{"item": func(o Order) ([]string, error) { return []string{o.Item}, nil }},
	})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, s.mirror.Close)
	s.sales, err = controller.New(controller.Config[Order]{Informer: s.mirror, Name: "sales", Workers: 4, Reconcile: s.sell})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, s.sales.Close)
	return nil
}

// close closes what uses something before what it uses: the controller, the informer, the
// engines, the host and the file.
func (s *shop) close() (err error) {
	for _, end := range slices.Backward(s.opened) {
		err = errors.Join(err, end())
	}
	return err
}

// sell takes the item of a new order from the stock. If the second of its two writes fails, or
// a crash prevents it, the next call takes another item; a real shop notes in the stock which
// orders it has served.
func (s *shop) sell(ctx context.Context, key string, order *engine.Object[Order]) (controller.Result, error) {
	if order == nil || order.Value.Phase != "" {
		return controller.Result{}, nil
	}
	_, err := s.stock.Update(ctx, order.Value.Item, func(stock Stock) (Stock, error) {
		if stock.Left == 0 {
			return stock, fmt.Errorf("no %s left", stock.Item)
		}
		stock.Left--
		return stock, nil
	}, engine.UpdateOptions{})
	if err != nil {
		return controller.Result{}, err // it is called again, after a growing delay
	}
	_, err = s.orders.Update(ctx, key, func(o Order) (Order, error) { o.Phase = "sold"; return o, nil }, engine.UpdateOptions{})
	return controller.Result{}, err
}

// A service whose objects survive restarts: a file with two kinds, an informer that a
// controller shares, and the order in which to close all that.
func Example_service() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	must(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "shop.db")

	var before shop
	must(before.open(path))
	_, err = before.stock.Create(ctx, Stock{Item: "lamp", Left: 5})
	must(err)
	var last *engine.Object[Order]
	for _, id := range []string{"1", "2", "3"} {
		last, err = before.orders.Create(ctx, Order{ID: id, Item: "lamp"})
		must(err)
	}
	must(before.sales.Settle(ctx, last.Revision))
	must(before.close())

	var after shop
	must(after.open(path))
	must(informer.WaitFor(ctx, after.mirror))
	lamps, err := after.mirror.ByIndex("item", "lamp")
	must(err)
	for _, order := range lamps {
		fmt.Println(order.Key, order.Value.Phase)
	}
	stock, err := after.stock.Get(ctx, "lamp", engine.GetOptions{})
	must(err)
	fmt.Println("left:", stock.Value.Left)
	must(after.close())
	// Output:
	// 1 sold
	// 2 sold
	// 3 sold
	// left: 2
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
