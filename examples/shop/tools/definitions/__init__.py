"""What the tools of the shop are: names, types, policy. Both sides import this file; it runs nothing."""

from pydantic import BaseModel, Field

from farhand import tool


class Search(BaseModel):
    """Find products by a word of their name."""

    word: str = Field(description="One word, such as milk")


class Product(BaseModel):
    """One thing that the shop sells."""

    name: str
    cents: int


class Item(BaseModel):
    """Put a product into the cart."""

    product: str = Field(description="Exact name of the product")
    count: int = Field(default=1, ge=1, le=20, description="How many of it")


class Cart(BaseModel):
    """What is in the cart, and the sum or why it could not be changed."""

    items: dict[str, int]
    cents: int
    problem: str | None = None


class Notice(BaseModel):
    """Show a short message on the person's screen."""

    text: str = Field(description="One sentence", max_length=200)


find_products = tool.define("find_products", input=Search, output=list[Product], effect="pure")
add_to_cart = tool.define("add_to_cart", input=Item, output=Cart, needs_approval=True)
show_notice = tool.define("show_notice", input=Notice, output=bool, timeout=30)
