"""What the server does for the shop's tools. Prices and carts stay here."""

from tools.definitions import Cart, Item, Product, Search, add_to_cart, find_products

PRICES = {"oat milk": 229, "whole milk": 149, "rye bread": 349}
CART: dict[str, int] = {}


@find_products.server
async def find(search: Search) -> list[Product]:
    """Look through the prices."""
    return [Product(name=name, cents=cents) for name, cents in PRICES.items() if search.word in name]


@add_to_cart.server
async def add(item: Item) -> Cart:
    """Change the cart of this server."""
    problem = None
    if item.product in PRICES:
        CART[item.product] = CART.get(item.product, 0) + item.count
    else:
        problem = f"there is no {item.product!r}; find_products knows the names"
    return Cart(items=CART, cents=sum(PRICES[name] * count for name, count in CART.items()), problem=problem)


TOOLS = [find, add]
