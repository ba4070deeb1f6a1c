"""What the client does: it shows notices, and keeps a cart of its own when there is no server to keep one."""

from tools.definitions import Cart, Item, Notice, add_to_cart, show_notice

CART: dict[str, int] = {}


@show_notice.client
def show(notice: Notice) -> bool:
    """Print the notice; a real client would draw it."""
    print(f"[screen] {notice.text}")
    return True


@add_to_cart.client
def add_locally(item: Item) -> Cart:
    """Change the cart of this client, which knows no prices."""
    CART[item.product] = CART.get(item.product, 0) + item.count
    return Cart(items=CART, cents=0)


TOOLS = [show]
OFFLINE_TOOLS = [show, add_locally]
